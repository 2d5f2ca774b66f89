"""Names that look alike are found: each ASCII character, and what may stand in its place, listed here by hand."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.names import lookalikes as names
from privet.names.lookalikes import confusable, normalised, skeletons

# From knowledge of the scripts, not from the module's table: Latin with marks and hooks, small capitals, Greek,
# Cyrillic, Armenian, Hebrew, Arabic, Cherokee, Coptic, Canadian syllabics, Lisu, full width, mathematical, circled.
LIKE = {
    "a": "àáâãäåāăąǎȧạảấαаɑᴀａ𝐚𝑎𝒂𝓪𝔞𝕒𝖆𝖺𝗮𝘢𝙖𝚊ⓐᵃªӑӓ",
    "b": "ḃḅḇƀɓЬьƅʙｂ𝐛𝕓𝖇𝚋ⓑᵇвᏏ",
    "c": "çćĉċčсϲᴄｃ𝐜𝕔𝒄ⓒᶜҫⲥ¢ƈꮯ",
    "d": "ďḋḍḏđɖɗԁｄ𝐝𝕕𝒅ⓓᵈᏧꓒ",
    "e": "èéêëēĕėęěẹẽеёҽєεᴇｅ𝐞𝕖𝒆ⓔᵉѐӗ℮ⅇℯ",
    "f": "ḟƒｆ𝐟𝕗𝒇ⓕᶠꞙ",
    "g": "ĝğġģǧǵɡցɢｇ𝐠𝕘𝒈ⓖᵍℊɠ",
    "h": "ĥḣḥħһհʜн𝐡𝕙𝒉ｈⓗʰℎɦᏂ",
    "i": "ìíîïĩīĭįıǐịіїιɩɪ1lIｉ𝐢𝕚𝒊ⓘⁱⅰӏℹⅈ",
    "j": "ĵǰјϳᴊｊ𝐣𝕛𝒋ⓙʲɉⅉ",
    "k": "ķǩḱḳкκᴋｋ𝐤𝕜𝒌ⓚᵏƙқ",
    "l": "ĺļľŀłḷ1Iℓ|ⅼɫｌ𝐥𝕝𝒍ⓛˡІΙӀ∣ןוا١۱ǀ",
    "m": "ṁṃḿмᴍｍ𝐦𝕞𝒎ⓜᵐⅿɱ",
    "n": "ñńņňǹṅṇոɴп𝐧𝕟𝒏ｎⓝⁿƞηռ",
    "o": "òóôõöøōŏőǒọοоօσ0ᴏｏ𝐨𝕠𝒐ⓞᵒºӧסهه٥०೦๐໐ჿℴⲟ〇",
    "p": "ṕṗрρᴘｐ𝐩𝕡𝒑ⓟᵖƥⲣ",
    "q": "ԛգｑ𝐪𝕢𝒒ⓠɋ",
    "r": "ŕŗřṙṛгʀｒ𝐫𝕣𝒓ⓡʳɍɽⲅ",
    "s": "śŝşšșṡṣѕꜱｓ𝐬𝕤𝒔ⓢˢſʂ",
    "t": "ţťțṫṭŧтτᴛｔ𝐭𝕥𝒕ⓣᵗƭƫ",
    "u": "ùúûüũūŭůűųǔụυսʋᴜｕ𝐮𝕦𝒖ⓤᵘцưμ",
    "v": "ṽṿνѵᴠｖ𝐯𝕧𝒗ⓥᵛⅴ∨ט",
    "w": "ŵẁẃẅẇԝѡաᴡωшｗ𝐰𝕨𝒘ⓦʷɯ",
    "x": "ẋẍхχ×ｘ𝐱𝕩𝒙ⓧˣⅹҳᕁ",
    "y": "ýÿŷȳỳỵуүγʏｙ𝐲𝕪𝒚ⓨʸỿƴў",
    "z": "źżžẓẕƶᴢｚ𝐳𝕫𝒛ⓩᶻʐ",
    "A": "ÀÁÂÄÅΑАᎪꓮＡ𝐀𝔸𝓐ⒶᗅⲀ🅰🄰🇦",
    "B": "ΒВᏴꓐＢ𝐁𝔹ℬⒷᗷ🅱β",
    "C": "ÇĆСᏟꓚＣ𝐂ℂⒸⅭⲤ",
    "D": "ĎÐĐᎠꓓＤ𝐃𝔻ⒹⅮᗞ",
    "E": "ÈÉÊËΕЕᎬꓰＥ𝐄𝔼ℰⒺ",
    "F": "ϜꓝＦ𝐅𝔽ℱⒻᖴ",
    "G": "ĞԌᏀꓖＧ𝐆𝔾Ⓖ",
    "H": "ΗНᎻꓧＨ𝐇ℍℋⒽⲎᕼ",
    "I": "ÌÍÎÏİΙІӀ1l|ꓲＩ𝐈𝕀ⅠⒾ🅸",
    "J": "ЈᎫꓙͿＪ𝐉𝕁Ⓙ",
    "K": "ΚКᏦꓗＫ𝐊𝕂KⓀⲔ",
    "L": "ŁᏞꓡＬ𝐋𝕃ⅬⓁᒪℒ",
    "M": "ΜМᎷꓟϺＭ𝐌𝕄ⅯⓂⲘℳ",
    "N": "ÑΝꓠＮ𝐍ℕⓃⲚ",
    "O": "ÒÓÔÕÖØΟОՕ0ꓳＯ𝐎𝕆ⓄⲞ𐐄",
    "P": "ΡРᏢꓑＰ𝐏ℙⓅⲢᑭ🅿",
    "Q": "ԚＱ𝐐ℚⓆ",
    "R": "ŘᎡᏒꓣＲ𝐑ℝℛⓇᖇ",
    "S": "ŠЅՏᏕꓢＳ𝐒𝕊Ⓢ",
    "T": "ŤΤТᎢꓔＴ𝐓𝕋ⓉⲦ",
    "U": "ÜՍᏌꓴＵ𝐔𝕌Ⓤᑌ",
    "V": "ѴᏙꓦＶ𝐕𝕍ⅤⓋᐯ",
    "W": "ԜᎳꓪＷ𝐖𝕎Ⓦ",
    "X": "ΧХꓫＸ𝐗𝕏ⅩⓍⲬ᙭",
    "Y": "ÝŸΥҮУꓬＹ𝐘𝕐ⓎᎩ",
    "Z": "ŽΖᏃꓜＺ𝐙ℤⓏ",
    "0": "OoΟοОоՕօ０𝟎𝟘𝟶⓪₀⁰〇०",
    "1": "lI|Iіӏ１𝟏𝟙𝟷①₁¹١",
    "2": "２𝟐𝟚②₂²ƧꙄ२❷",
    "3": "３𝟑𝟛③₃³ЗƷзӠ❸",
    "4": "４𝟒𝟜④₄⁴Ꮞ❹",
    "5": "５𝟓𝟝⑤₅⁵Ƽ❺",
    "6": "６𝟔𝟞⑥₆⁶бᏮ❻",
    "7": "７𝟕𝟟⑦₇⁷❼",
    "8": "８𝟖𝟠⑧₈⁸Ȣ৪❽",
    "9": "９𝟗𝟡⑨₉⁹৭❾",
    " ": "_-\u00a0\u2003\u2009\u202f\u3000–—‐‑‒−\u2800﹘＿‿",
    "-": "_ –—‐‑‒−⁃➖﹣－﹘ー",
    "_": "- ＿–‿﹏",
}  # fmt: skip
SEQUENCES = {
    "m": ["rn"], "w": ["vv"], "ae": ["æ", "ӕ"], "oe": ["œ"], "fi": ["ﬁ"], "ff": ["ﬀ"], "lO": ["Ю"], "IO": ["Ю"],
    "ll": ["ǁ"], "ij": ["ĳ"], "nj": ["ǌ"], "dz": ["ʣ", "ǳ"], "No": ["№"], "xi": ["ⅺ"], "bl": ["ы"],
}  # fmt: skip
UNSEEN = (
    "\u200b\u200c\u200d\u2060\ufeff\u00ad\u034f\u115f\u1160\u3164\uffa0\ufe0f\ufe00\u180b\u17b4\u061c\u202e\u2066"
    "\U000e0041\U000e0100"
)
MARKS = "\u0301\u0308\u0323\u0336\u0338\u20dd\u0489"

ORDINARY = [
    "people", "Health 2024", "census-north", "visits_2019", "cohort B", "income and wealth", "A", "x9", "Level 10",
    "warm rooms", "MODERN", "new visits", "0 to 100", "WWW", "Zoe",
    "quick brown fox jumps over the lazy dog 0123456789",
]  # fmt: skip

Judge = Callable[[str, str], bool]


def swapped(name: str, choose: random.Random, share: float) -> str:
    """The same name with some characters, at least one, exchanged for others that look like them."""
    places = [i for i, char in enumerate(name) if char in LIKE]
    chosen = {i for i in places if choose.random() < share} or {choose.choice(places)}
    return "".join(choose.choice(LIKE[char]) if i in chosen else char for i, char in enumerate(name))


@pytest.mark.parametrize("char", LIKE)
def test_one_character(char: str) -> None:
    around = (("x", "y"), ("rv", "nv"), ("Ab ", " 7"), ("", "q"))
    for like, (before, after) in product(LIKE[char], around):
        name, other = f"{before}{char}{after}", f"{before}{like}{after}"
        if char not in " -_" or (before and after and " " not in before + after):
            assert confusable(name, other), (name, other)
            assert confusable(normalised(name), normalised(other)), "and as it would be kept"


def test_a_character_that_changes_its_looks_when_it_is_kept() -> None:
    assert normalised("\u03f9ohort") == "Σohort"
    assert confusable("\u03f9ohort", "Cohort"), "so that names are compared as they were given"


@pytest.mark.parametrize(("text", "like"), [(text, like) for text, each in SEQUENCES.items() for like in each])
def test_sequences(text: str, like: str) -> None:
    for before, after in product(("", "v", "r", "i", "vr"), ("", "n", "v", "rn")):
        assert confusable(before + text + after, before + like + after)


@pytest.mark.parametrize("name", ORDINARY)
def test_many_characters_at_once(name: str) -> None:
    choose = random.Random(name)
    for share in (0.0, 0.2, 0.5, 1.0):
        for _ in range(100):
            other = swapped(name, choose, share)
            assert confusable(name, other), (name, other)
            assert confusable(other, name), (name, other)


@pytest.mark.parametrize("name", ORDINARY)
def test_what_can_not_be_seen(name: str) -> None:
    choose = random.Random(name)
    for _ in range(100):
        other = name
        for _ in range(choose.randint(1, 4)):
            place = choose.randint(1, len(other))
            other = other[:place] + choose.choice(UNSEEN + MARKS) + other[place:]
        assert confusable(name, other), ascii(other)


@given(st.text())
@settings(max_examples=150)
def test_capital_letters_never_tell(name: str) -> None:
    for other in (name.casefold(), name.upper(), name.lower(), name.swapcase(), name.title()):
        if name.casefold() == other.casefold() or name.upper() == other.upper():
            assert confusable(name, other)


@given(st.text(), st.text())
@settings(max_examples=150)
def test_it_is_symmetric_and_total(one: str, other: str) -> None:
    assert confusable(one, other) is confusable(other, one)
    assert confusable(one, one)
    assert confusable(one, normalised(one))
    assert normalised(normalised(one)) == normalised(one)
    if normalised(one).casefold() == normalised(other).casefold():
        assert confusable(one, other)


def test_every_character_has_a_skeleton() -> None:
    for code in range(0, sys.maxunicode + 1, 41):
        assert skeletons(f"a{chr(code)}b")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("  health  ", "health"),
        ("health\u00a0\u2003 2024", "health 2024"),
        ("\tａ\nb", "a b"),
        ("ﬁne", "fine"),
        ("é", "é"),
        ("e\u0301", "é"),
        ("Health", "Health"),
        ("\u3000", ""),
    ],
)
def test_normalised(given: str, kept: str) -> None:
    assert normalised(given) == kept


DISTINCT = [
    "people", "peoples", "person", "health 2024", "health 2025", "health", "wealth", "census north", "census south",
    "cohort a", "cohort b", "cohort 2", "cohort 3", "cohort 5", "cohort 6", "vest", "nest", "best", "test", "visits",
    "patients", "inpatients", "out patients", "outpatients", "income", "outcome", "Личности", "Пациенты", "υγεία",
    "εισόδημα", "健康", "所得", "人口", "صحة", "דאטה", "स्वास्थ्य", "건강", "소득", "data.v2", "data.v3", "données",
]  # fmt: skip


def test_names_that_differ_are_told_apart() -> None:
    assert [(a, b) for i, a in enumerate(DISTINCT) for b in DISTINCT[:i] if confusable(a, b)] == []


# --- careless twins -------------------------------------------------------------------------------


def by_folding(one: str, other: str) -> bool:
    return normalised(one).casefold() == normalised(other).casefold()


def by_decomposing(one: str, other: str) -> bool:
    def bare(name: str) -> str:
        parts = unicodedata.normalize("NFKD", name.casefold())
        return "".join(char for char in parts if unicodedata.category(char) not in ("Mn", "Cf"))

    return bare(one) == bare(other)


def folded_first(one: str, other: str) -> bool:
    """One skeleton, of small letters: Greek capitals are lost."""
    return names._skeleton(one.casefold()) == names._skeleton(other.casefold())


def as_written_only(one: str, other: str) -> bool:
    return names._skeleton(one) == names._skeleton(other)


@pytest.mark.parametrize("twin", [by_folding, by_decomposing, folded_first, as_written_only])
def test_a_careless_twin_is_found_out(twin: Judge) -> None:
    pairs = [("x" + char, "x" + like) for char, chars in LIKE.items() for like in chars]
    pairs += [("ΝΗΣΟΣ", "νησος"), ("Ναξος", "ΝΑΞΟΣ")]
    assert all(confusable(*pair) for pair in pairs)
    assert not all(twin(*pair) for pair in pairs)


# --- speed ----------------------------------------------------------------------------------------


def test_it_is_quick() -> None:
    known = [f"dataset number {i} of this hospital" for i in range(1_000)]
    confusable(known[0], "heаlth")
    start = time.process_time()
    for name in known:
        skeletons(name)
    for name in known:
        confusable(name, "heаlth")
    assert time.process_time() - start < 2  # some milliseconds; CPU time, so that a busy machine does not matter


def test_nothing_is_made_at_import() -> None:
    sizes = "x._looks.cache_info().currsize, x._appearance.cache_info().currsize"
    code = f"from privet.names import lookalikes as x; print({sizes})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0"]
