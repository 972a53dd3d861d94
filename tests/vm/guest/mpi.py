#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Two MPI processes send each other messages of random bytes, and the first compares what comes back; the second also
writes into the first's memory. Prints the number of bytes."""
import hashlib
import os

from mpi4py import MPI

SIZES = 0, 1, 4096, 65537, 8 << 20


def send_there_and_back(world):
    for size in SIZES:
        data, back = os.urandom(size), bytearray(size)
        if world.rank == 0:
            world.Send([data, MPI.BYTE], 1)
            world.Recv([back, MPI.BYTE], 1)
            assert back == data, size
        else:
            world.Recv([back, MPI.BYTE], 0)
            world.Send([back, MPI.BYTE], 0)


def write_to_the_first(world):
    data, memory = os.urandom(SIZES[-1]), bytearray(SIZES[-1])
    window = MPI.Win.Create(memory, comm=world)
    window.Fence()
    if world.rank == 1:
        window.Put([data, MPI.BYTE], 0)
    window.Fence()
    written = data if world.rank == 1 else memory
    sums = world.allgather(hashlib.sha256(written).hexdigest())
    assert sums[0] == sums[1]
    window.Free()


def main():
    world = MPI.COMM_WORLD
    assert world.size == 2
    send_there_and_back(world)
    write_to_the_first(world)
    if world.rank == 0:
        print("equal bytes:", sum(SIZES))


main()
