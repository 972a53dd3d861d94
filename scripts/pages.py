# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Pages of HTML for scripts/page: they need no other file, no network and no program, have the colours of the reader's
scheme, light or dark, and are well-formed XML. Parts are HTML; all other arguments are text, which is escaped."""
import re

from charts import STYLE, escape, in_both_schemes

RULES = """
html { color-scheme: light dark }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif }
main { max-width: 48rem; margin: auto; padding: 2rem 1.25rem }
h1 { font-size: 1.6rem; font-weight: 600; margin: 0 }
h2 { font-size: 1.15rem; font-weight: 600; margin: 3rem 0 .5rem }
p { margin: .25rem 0 1rem }
ul, table, pre, figcaption, section > p, footer { font-size: .85rem }
ul { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1.5rem 0; padding: 1rem 0; list-style: none;
    border-top: 1px solid; border-bottom: 1px solid }
strong { display: block; font-size: 1.3rem; font-weight: 400; font-variant-numeric: tabular-nums }
figure { margin: 1rem 0; overflow-x: auto }
svg { display: block; max-width: 100%; height: auto; margin: auto }
.chart { min-width: 34rem }
.wide, pre { overflow-x: auto }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; font-variant-numeric: tabular-nums }
caption { text-align: left; padding: .3rem 0 }
th, td { padding: .2rem .5rem; text-align: right; font-weight: 400; border-bottom: 1px solid }
th:first-child { text-align: left; padding-left: 0 }
thead th { font-weight: 600 }
footer { margin-top: 3rem; border-top: 1px solid }
""" + in_both_schemes("""
body { color: $ink; background: $ground }
p, li, figcaption, caption { color: $soft }
strong { color: $ink }
td, th, ul, footer { border-color: $line }
""")


def grouped(value):
    """A number in groups of thousands; other values as they are."""
    return f"{value:,}".replace(",", "\u202f") if isinstance(value, int) else str(value)


def table(caption, head, rows):
    """A table whose first column names the rows."""
    parts = ['<div class="wide">', "<table>", f"<caption>{escape(caption)}</caption>", "<thead>", "<tr>"]
    parts += [f'<th scope="col">{escape(cell)}</th>' if cell else "<td></td>" for cell in head]
    parts += ["</tr>", "</thead>", "<tbody>"]
    for name, *cells in rows:
        cells = [f"<td>{escape(grouped(cell))}</td>" for cell in cells]
        parts.append(f'<tr><th scope="row">{escape(name)}</th>' + "".join(cells) + "</tr>")
    return "\n".join(parts + ["</tbody>", "</table>", "</div>"])


def figure(picture, caption):
    return f"<figure>\n{picture}\n<figcaption>{escape(caption)}</figcaption>\n</figure>"


def paragraph(words):
    return f"<p>{escape(words)}</p>"


def details(summary, words):
    """Preformatted text that a reader can open."""
    return f"<details>\n<summary>{escape(summary)}</summary>\n<pre>{escape(words)}</pre>\n</details>"


def page(title, introduction, figures, sections, footer):
    """A page: figures are (name, value), sections (heading, parts...)."""
    parts = []
    if figures:
        items = [f"<li>{escape(name)} <strong>{escape(value)}</strong></li>" for name, value in figures]
        parts += ["<ul>", *items, "</ul>"]
    for heading, *content in sections:
        parts += ["<section>", f"<h2>{escape(heading)}</h2>", *content, "</section>"]
    # HTML wants the style of a picture in the head, too.
    body, style = "\n".join(parts), re.compile("<style>(.*?)</style>", re.DOTALL)
    rules = RULES + STYLE + "".join(style.findall(body))
    head = ["<!DOCTYPE html>", '<html lang="en" xmlns="http://www.w3.org/1999/xhtml">', "<head>",
            '<meta charset="utf-8"/>', '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
            f"<title>{escape(title)}</title>", f"<style>{rules}</style>", "</head>", "<body>", "<main>",
            f"<h1>{escape(title)}</h1>", paragraph(introduction)]
    foot = [f"<footer>{paragraph(footer)}</footer>", "</main>", "</body>", "</html>"]
    return "\n".join([*head, style.sub("", body), *foot]) + "\n"
