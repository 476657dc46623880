#!/usr/bin/env python3
"""Makes random scheduling cases, one JSON object a line.

    cases.py --seed 7 --count 200 [--family affinity] > cases.jsonl
    cases.py --seed 1 --count 3900 --set first          # the published vectors

A case is {"name", "config"?, "objects", "pods"}: a cluster, and the pods to
schedule into it in order. The families exercise one feature each; `mixed` and
`mixed2` draw from many at once. Without --family all take turns.
"""
import argparse
import json

import configs
import families
import gen
import storage

MORE = {**families.FAMILIES, **configs.FAMILIES, **storage.FAMILIES}
NAMES = sorted([*gen.FAMILIES, *MORE])
APART = {"claims"}  # only by name: see there
RARE = {"wide": 8}  # one turn in so many rounds


def rotation(which):
    """The families in turn, for ever; `first` is the order of the published vectors."""
    names = sorted(gen.FAMILIES) if which == "first" else [n for n in NAMES if n not in APART]
    turn = 0
    while True:
        yield from (n for n in names if turn % RARE.get(n, 1) == 0)
        turn += 1


def case(seed, family, i):
    g = gen.Gen(f"{seed}/{family}/{i}")
    name = f"{family}-{seed}-{i}"
    return g.case(name, family) if family in gen.FAMILIES else {"name": name, **MORE[family](g)}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--count", type=int, default=100)
    ap.add_argument("--family", choices=NAMES, help="one family only; default: all in turn")
    ap.add_argument("--set", choices=["all", "first"], default="all", help="which families take turns")
    ap.add_argument("--list", action="store_true", help="print the families' names and leave")
    a = ap.parse_args()
    if a.list:
        print("\n".join(NAMES))
        return
    turns = rotation(a.set)
    for i in range(a.count):
        family = a.family or next(turns)
        print(json.dumps(case(a.seed, family, i), separators=(",", ":")))


if __name__ == "__main__":
    main()
