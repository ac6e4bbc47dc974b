#!/usr/bin/env python3
"""How training and its result depend on the number of measurements: `tarn tune --train-only` on parts of a store.

    bench/tune/curve.py STORE.db [--tarn build/tarn] [--rows 400,800,1600] [--hw DESCRIPTION]

A part is drawn row by row, always the same one. Needs nothing but Python.
"""
import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time


def part(store, rows, path):
    shutil.copy(store, path)
    db = sqlite3.connect(path)
    db.execute("CREATE TEMP TABLE kept AS SELECT threads, kernel, schedule FROM trial "
               "ORDER BY (kernel * 31 + schedule * 17) % 9973, kernel, schedule LIMIT ?", (rows,))
    db.execute("DELETE FROM trial WHERE (threads, kernel, schedule) NOT IN (SELECT * FROM kept)")
    db.commit()
    count = db.execute("SELECT count(*) FROM trial").fetchone()[0]
    db.close()
    return count


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("store")
    p.add_argument("--tarn", default="build/tarn")
    p.add_argument("--rows", default="400,800,1600,100000")
    p.add_argument("--hw", default="host", help="of the machine that measured")
    a = p.parse_args()
    sqlite3.connect(a.store).execute("PRAGMA wal_checkpoint(TRUNCATE)")
    print("measurements seconds    KB  pairwise    R2  recall30  held-out kernels")
    with tempfile.TemporaryDirectory() as folder:
        db, price = os.path.join(folder, "part.db"), os.path.join(folder, "tarn.price")
        for rows in map(int, a.rows.split(",")):
            count, begin = part(a.store, rows, db), time.time()
            text = subprocess.run([a.tarn, "tune", "--train-only", "--hw", a.hw, "--db", db, "--output", price,
                                   "--json"],
                                  capture_output=True, text=True, check=True).stdout
            m, seconds = json.loads(text)["model"], time.time() - begin
            print(f"{count:12d} {seconds:7.1f} {os.path.getsize(price) // 1000:5d} {m['pairwise']:9.3f} {m['r2']:5.2f} "
                  f"{m['recall30']:9.3f} {m['held_out_kernels']:17d}", flush=True)


if __name__ == "__main__":
    main()
