"""Rows of a benchmark: what was measured, against what, and whether the target holds."""
import json
import statistics
import sys


class Rows:
    """Collects {metric, unit, value, baseline, ratio, target, ok} and prints them as a table."""

    def __init__(self, name):
        self.name = name
        self.rows = []

    def add(self, metric, unit, value, baseline=None, target=None, at_most=True, of="value"):
        """`target` bounds the value, or with of="ratio" value / baseline; at_most=False turns the bound around."""
        ratio = None if not baseline else value / baseline
        ok = None
        if target is not None:
            figure = ratio if of == "ratio" else value
            ok = figure is not None and (figure <= target if at_most else figure >= target)
        bound = None if target is None else f"{'ratio ' if of == 'ratio' else ''}{'<=' if at_most else '>='} {target:g}"
        self.rows.append(dict(metric=metric, unit=unit, value=value, baseline=baseline, ratio=ratio, target=bound, ok=ok))

    def show(self, out=sys.stdout):
        def text(value):
            if value is None:
                return "-"
            if isinstance(value, bool):
                return "ok" if value else "MISSED"
            if isinstance(value, float):
                return f"{value:.4g}" if abs(value) < 10000 else f"{value:.0f}"
            return str(value)

        names = ["metric", "unit", "value", "baseline", "ratio", "target", "ok"]
        table = [names] + [[text(row[name]) for name in names] for row in self.rows]
        widths = [max(len(line[i]) for line in table) for i in range(len(names))]
        for line in table:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip(), file=out)

    def finish(self, args):
        self.show()
        if args.json:
            with open(args.json, "w", encoding="utf-8") as file:
                json.dump({"bench": self.name, "rows": self.rows}, file, indent=2)
        missed = [row["metric"] for row in self.rows if row["ok"] is False]
        if missed:
            print("missed: " + ", ".join(missed), file=sys.stderr)
        return 1 if args.gate and missed else 0


def add_arguments(parser):
    parser.add_argument("--json", metavar="FILE", help="write the rows here too")
    parser.add_argument("--gate", action="store_true", help="exit 1 when a row misses its target")


def skip(args, why):
    """What a benchmark that cannot run here returns: a gate that was not checked has not passed."""
    print("skipped: " + why, file=sys.stderr)
    return 1 if args.gate else 0


def median(values):
    return statistics.median(values)
