# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads what a boot of guest/bench with the plugin count.c left: BASE.log, with the guest's measurements and symbols,
and BASE.counts."""
import base64
import bisect
import collections
import gzip
import pathlib

FABRIC = "soft_ib"


def unpacked(packed):
    """(address, name, module) of the lines "address type name [module]" that the guest packed."""
    for line in gzip.decompress(base64.b64decode(packed)).decode().splitlines():
        words = line.split()
        yield int(words[0], 16), words[2], words[3].strip("[]") if len(words) > 3 else "kernel"


def measurements(base):
    """(row, length, (packets, bytes), symbols) by the measurement's number. Modules have other addresses once loaded
    again."""
    found, modules, kernel = {}, [], []
    for line in pathlib.Path(f"{base}.log").read_text().splitlines():
        match line.split():
            case ["symbols", "modules", packed]:
                modules = list(unpacked(packed))
            case ["symbols", "kernel", packed]:
                kernel = list(unpacked(packed))
            case ["measurement", number, row, length, packets, sent]:
                found[int(number)] = row, length, (int(packets), int(sent)), modules
    return {number: (*of[:3], sorted(kernel + of[3])) for number, of in found.items()}


def counters(base):
    """(number, lines) of each measurement in BASE.counts."""
    number, lines = None, []
    for line in pathlib.Path(f"{base}.counts").read_text().splitlines():
        if line.startswith("measurement "):
            if number:
                yield number, lines
            number, lines = int(line.split()[1]), []
        else:
            lines.append(line)
    if number:
        yield number, lines


def by_function(lines, symbols):
    """Counts of each processor by (module, function)."""
    addresses = [symbol[0] for symbol in symbols]
    processors = []
    for line in lines:
        address, *counts = line.split()
        address = int(address, 16)
        _, name, module = symbols[bisect.bisect(addresses, address) - 1] if address > 1 else (0, "user space", "user space")
        processors = processors or [collections.Counter() for _ in counts]
        for processor, count in zip(processors, counts):
            processor[module, name] += int(count)
    return processors


def rows(base):
    """{row: (counts of each processor by (module, function), packets, bytes)}: the difference of the row's long and its
    short work, which has no start and no end in it. Packets and bytes are those of the fabric's links: a program that
    ends has sent its bytes to the socket, not all of them to the peer."""
    of, lengths = measurements(base), collections.defaultdict(dict)
    for number, lines in counters(base):
        row, length, carried, symbols = of[number]
        lengths[row][length] = by_function(lines, symbols), carried
    differences = {}
    for row, measured in lengths.items():
        (few, few_carried), (many, many_carried) = measured["short"], measured["long"]
        for mine, before in zip(many, few):
            mine.subtract(before)
        differences[row] = many, *(more - less for more, less in zip(many_carried, few_carried))
    return differences


def by_module(counts):
    modules = collections.Counter()
    for (module, _), count in counts.items():
        modules[module] += count
    return modules


def of_hosts(processors):
    """All but the fabric's own."""
    return sum(count for counts in processors for (module, _), count in counts.items() if module != FABRIC)
