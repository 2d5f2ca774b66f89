"""OpenDP's Laplace mechanism, timed in its own environment: {"scale", "count", "kind"} -> seconds."""

import json
import sys
import time

import opendp.prelude as dp

dp.enable_features("contrib")

for line in sys.stdin:
    asked = json.loads(line)
    if asked["kind"] == "integers":
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        values = [0] * asked["count"]
    elif asked["kind"] == "reals":
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
        values = [0.0] * asked["count"]
    else:
        space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
        values = 0
    mechanism = dp.m.make_laplace(*space, scale=float(asked["scale"]))
    start = time.perf_counter()
    if asked["kind"] == "single":
        for _ in range(asked["count"]):
            mechanism(values)
    else:
        mechanism(values)
    print(json.dumps(time.perf_counter() - start), flush=True)
