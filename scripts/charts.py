# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Charts as SVG, for scripts/page and tests/vm/bench-table. They have axes with units, title and description, and the
colours of the reader's scheme, light or dark. Knows nothing of what is measured."""
import html
import itertools
import math
import re
import statistics
import string

WIDTH, LEFT, TOP, BOTTOM = 760, 64, 26, 40
# Light and dark: background, text, lesser text, lines, and those of series, which differ for the colour-blind too.
LIGHT = {"ground": "#ffffff", "ink": "#1b2127", "soft": "#56616b", "line": "#d8dde2", "s1": "#1c6ea4", "s2": "#b8501a",
         "s3": "#3a7d44", "s4": "#7d4a9e", "s5": "#7a6210", "s6": "#a83a5b"}
DARK = {"ground": "#14181c", "ink": "#e3e7ea", "soft": "#9ba6af", "line": "#343c44", "s1": "#67b1e6", "s2": "#f09a62",
        "s3": "#79c587", "s4": "#c39be0", "s5": "#d2b655", "s6": "#ee8fab"}
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 2")


def escape(text):
    """Escapes text of an element or an attribute; XML has no other control characters."""
    return html.escape(re.sub(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]", "\ufffd", str(text)))


def in_both_schemes(rules):
    """Rules of CSS with the colours of both schemes; those of the dark one come later, and win."""
    light, dark = (string.Template(rules).substitute(of) for of in (LIGHT, DARK))
    return f"{light}@media (prefers-color-scheme: dark) {{{dark}}}\n"


# A text or bar of a series has its colour, without an outline.
STYLE = in_both_schemes("""
svg { font: 12px sans-serif }
svg text { fill: $ink }
svg .soft { fill: $soft }
.ground { fill: $ground }
.grid { stroke: $line }
.axis { stroke: $soft }
.s1 { stroke: $s1; fill: $s1 } .s2 { stroke: $s2; fill: $s2 } .s3 { stroke: $s3; fill: $s3 }
.s4 { stroke: $s4; fill: $s4 } .s5 { stroke: $s5; fill: $s5 } .s6 { stroke: $s6; fill: $s6 }
.bar { stroke: none }
svg .curve { fill: none; stroke-width: 2; stroke-linejoin: round }
""")


def rounded(value):
    """A value with three digits."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{places}f}".replace(",", "\u202f")
    return text.rstrip("0").rstrip(".") if "." in text else text


class Axis:
    """Maps values to a length in pixels, linearly or by logarithm; has ticks at round values."""

    def __init__(self, values, length, log=False, zero=True, max_steps=6, tight=False):
        self.length, self.log = length, log
        low, high = min(values), max(values)
        if log:
            self.ticks = self.decades(low, high)
        else:
            low = min(low, 0) if zero else low
            high = high if high > low else low + 1
            rough = (high - low) / max_steps
            unit = 10 ** math.floor(math.log10(rough))
            step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
            first = math.floor(low / step + 1e-9)
            self.ticks = [step * n for n in range(first, math.ceil(high / step - 1e-9) + 1)]
        self.low, self.high = self.ticks[0], self.ticks[-1]
        if tight and not log:
            self.high = high
            self.ticks = [tick for tick in self.ticks if tick <= high]

    @staticmethod
    def decades(low, high):
        """Round values around two others: of 1, 2 and 5 in a few decades, or whole decades."""
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high) + 1e-9)
        values = [factor * 10.0 ** power for power in range(first, last + 1)
                  for factor in ((1, 2, 5) if last - first <= 3 else (1,))]
        start = max(n for n, value in enumerate(values) if value <= low * 1.0001)
        end = next((n for n, value in enumerate(values) if value >= high * 0.9999), len(values) - 1)
        return values[start:max(end, start + 1) + 1]

    def at(self, value):
        if self.log:
            return self.length * math.log(value / self.low) / math.log(self.high / self.low)
        return self.length * (value - self.low) / (self.high - self.low)


def svg(title, description, height, content):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}" class="chart" role="img">\n'
            f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>\n" + "\n".join(content) + "\n</svg>")


def alone(picture):
    """A chart as a file of its own."""
    head, rest = picture.split("</desc>\n", 1)
    return f'{head}</desc>\n<style>{STYLE}</style>\n<rect class="ground" width="100%" height="100%"/>\n{rest}\n'


def text(x, y, words, anchor="start", kind=""):
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'


def line(x, y, far_x, far_y, kind):
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{far_x:.1f}" y2="{far_y:.1f}"/>'


def bar(x, y, width, height, kind, title=""):
    title = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect class="{kind} bar" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">{title}</rect>'


def across(axis, y, height, label, left=LEFT):
    """Grid lines and numbers of a horizontal axis below a plot."""
    parts = []
    for tick in axis.ticks:
        x = left + axis.at(tick)
        parts += [line(x, y, x, y + height, "grid"), text(x, y + height + 16, rounded(tick), "middle", "soft")]
    return parts + [line(left, y + height, left + axis.length, y + height, "axis"),
                    text(left + axis.length, y + height + 33, label, "end", "soft")]


def upwards(axis, y, width, label, above=9, left=LEFT):
    """Grid lines and numbers of a vertical axis left of a plot, with what it counts above."""
    parts = [text(left, y - above, label, "start", "soft")]
    for tick in axis.ticks:
        tick_y = y + axis.length - axis.at(tick)
        parts += [line(left, tick_y, left + width, tick_y, "grid"),
                  text(left - 8, tick_y + 4, rounded(tick), "end", "soft")]
    return parts


def curves(title, description, series, x_label, y_label, log=False, zero=True, height=230, points=False):
    """Lines of (name, [(x, y)...]), each with its name at its end."""
    width = WIDTH - LEFT - 130
    every = [point for _, values in series for point in values]
    x_axis = Axis([x for x, _ in every], width, log, max_steps=8, tight=True)
    y_axis = Axis([y for _, y in every], height, log, zero)
    parts = upwards(y_axis, TOP, width, y_label) + across(x_axis, TOP, height, x_label)
    ends = []
    for number, (name, values) in enumerate(series):
        kind = f"s{number % 6 + 1}"
        places = [(LEFT + x_axis.at(x), TOP + height - y_axis.at(y)) for x, y in values]
        dashes = f' stroke-dasharray="{DASHES[number % 6]}"' if DASHES[number % 6] else ""
        parts.append(f'<polyline class="{kind} curve"{dashes} points="'
                     + " ".join(f"{x:.1f},{y:.1f}" for x, y in places) + '"/>')
        if points:
            parts += [f'<circle class="{kind} bar" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>' for x, y in places]
        ends.append([places[-1][1], name, kind, places[-1][0]])
    # Names that would overlap move down, and then all of them up, if the last one is below the plot.
    ends.sort()
    for above, below in itertools.pairwise(ends):
        below[0] = max(below[0], above[0] + 15)
    shift = max(0, ends[-1][0] - TOP - height)
    parts += [text(x + 8, y - shift + 4, name, "start", f"{kind} bar") for y, name, kind, x in ends]
    return svg(title, description, TOP + height + BOTTOM, parts)


def histograms(title, description, series, x_label, y_label, height=110):
    """Counts of the values of each (name, values) in bins of equal ratio, one plot above the other, with median and
    99th percentile."""
    width = WIDTH - LEFT - 20
    every = [value for _, values in series for value in values]
    axis = Axis(every, width, log=True)
    bins = 90
    counts = []
    for _, values in series:
        counts.append([0] * bins)
        for value in values:
            counts[-1][min(int(axis.at(value) / width * bins), bins - 1)] += 1
    parts, y = [], 2 * TOP
    for number, ((name, values), count) in enumerate(zip(series, counts)):
        up = Axis(count, height, max_steps=3)
        last = number == len(series) - 1
        parts += upwards(up, y, width, y_label, 26) + across(axis, y, height, x_label if last else "")
        for place, amount in enumerate(count):
            if amount:
                parts.append(bar(LEFT + place * width / bins, y + height - up.at(amount), width / bins - 1,
                                 up.at(amount), f"s{number + 1}", f"{amount}"))
        parts.append(text(LEFT + width, y - 26, name, "end", f"s{number + 1} bar"))
        for words, share, anchor, beside in ("median", 0.5, "end", -4), ("99 %", 0.99, "start", 4):
            x = LEFT + axis.at(quantile(values, share))
            parts += [line(x, y - 14, x, y + height, "axis"), text(x + beside, y - 5, words, anchor, "soft")]
        y += height + 24 + 2 * TOP
    return svg(title, description, y - 2 * TOP - 24 + BOTTOM, parts)


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def median_and_spread(values):
    """The median, and half of the range as a share of it."""
    median = statistics.median(values)
    return median, (max(values) - min(values)) / 2 / (median or 1)


def bars(title, description, rows, label, base=0.0, limit=None, left=290):
    """A horizontal bar for each (name, value), from the value base outwards; one that is longer than limit ends there,
    after a gap."""
    step, width = 20, WIDTH - left - 70
    axis = Axis([0, limit or max(value for _, value in rows)], width)
    height = step * len(rows) + 6
    parts = across(axis, TOP, height, label, left)
    for number, (name, value) in enumerate(rows):
        y = TOP + 3 + number * step
        start, end = sorted((axis.at(base), axis.at(min(value, axis.high))))
        parts += [text(left - 8, y + 14, name, "end"),
                  bar(left + start, y + 3, max(end - start, 1), step - 6, "s1" if value >= base else "s2"),
                  text(left + max(end, axis.at(base)) + 5, y + 14, rounded(value))]
        if value > axis.high:
            parts.append(bar(left + end - 12, y + 3, 4, step - 6, "ground"))
    parts.append(line(left + axis.at(base), TOP, left + axis.at(base), TOP + height, "axis"))
    return svg(title, description, TOP + height + BOTTOM, parts)


def comparison(kernel, ratios):
    """Rows of `make bench`: how many times better than the in-tree driver each is."""
    better = sum(ratio >= 1 for ratio in ratios.values())
    return bars(f"Ratios to the in-tree driver, Linux {kernel}",
                f"{better} of {len(ratios)} rows are at least as good.", list(ratios.items()),
                f"times better than the in-tree driver, Linux {kernel}", base=1.0, limit=4)


def marks(title, description, rows, high, label, left=110):
    """A row for each (name, [x...]) with a mark at each place."""
    step, width = 18, WIDTH - left - 20
    axis = Axis([0, high], width, max_steps=8, tight=True)
    height = step * len(rows) + 6
    parts = across(axis, TOP, height, label, left)
    for number, (name, places) in enumerate(rows):
        y = TOP + 3 + number * step
        parts.append(text(left - 8, y + 13, name, "end"))
        parts += [bar(left + axis.at(place) - 1, y + 3, 2, step - 6, "s1") for place in places]
    return svg(title, description, TOP + height + BOTTOM, parts)
