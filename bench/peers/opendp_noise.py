"""OpenDP's Laplace and Gaussian mechanisms, timed in their own environment.

{"mechanism", "scale", "count", "kind"} -> seconds of CPU time.
"""

import json
import sys
import time

import opendp.prelude as dp

dp.enable_features("contrib")

MAKERS = {"laplace": (dp.m.make_laplace, dp.l1_distance), "gaussian": (dp.m.make_gaussian, dp.l2_distance)}

for line in sys.stdin:
    asked = json.loads(line)
    make, distance = MAKERS[asked["mechanism"]]
    if asked["kind"] == "integers":
        space = dp.vector_domain(dp.atom_domain(T=int)), distance(T=int)
        values = [0] * asked["count"]
    elif asked["kind"] == "reals":
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), distance(T=float)
        values = [0.0] * asked["count"]
    else:
        space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
        values = 0
    mechanism = make(*space, scale=float(asked["scale"]))
    start = time.process_time()
    if asked["kind"] == "single":
        for _ in range(asked["count"]):
            mechanism(values)
    else:
        mechanism(values)
    print(json.dumps(time.process_time() - start), flush=True)
