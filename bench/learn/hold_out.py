#!/usr/bin/env python3
"""Makes a data set to choose recipes by: the training split of one in ModelNet40's HDF5 layout, every tenth cloud as its test split.

    command -p python3 bench/learn/hold_out.py modelnet40_ply_hdf5_2048 OUT
    stipple data pack OUT -o choice.stpk --points 1024 --bits 10

The test split of the first set is not read.
"""
import os
import shutil
import sys

import h5py
import numpy as np


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, out = sys.argv[1:]
    os.makedirs(out)
    shutil.copy(os.path.join(source, "shape_names.txt"), out)
    with open(os.path.join(source, "train_files.txt")) as names:
        files = [os.path.join(source, os.path.basename(name.strip())) for name in names if name.strip()]
    parts = [h5py.File(name, "r") for name in files]
    data = np.concatenate([part["data"][:] for part in parts])
    label = np.concatenate([part["label"][:] for part in parts])
    is_held_out = np.arange(len(data)) % 10 == 9
    for split, mask in (("train", ~is_held_out), ("test", is_held_out)):
        name = f"ply_data_{split}0.h5"
        with h5py.File(os.path.join(out, name), "w") as file:
            file["data"], file["label"] = data[mask], label[mask]
        with open(os.path.join(out, f"{split}_files.txt"), "w") as names:
            names.write(name + "\n")
        print(f"{split}: {mask.sum()} clouds")


if __name__ == "__main__":
    main()
