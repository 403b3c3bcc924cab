"""docs/cost.md: what comes out follows from what goes in."""

import re
import unittest

from translated import EVERYTHING, REQUIRED, ROOT, Template

TEXT = (ROOT / "docs/cost.md").read_text()


def tables():
    """Every row of two cells that ends in a number, by its first cell, section by section."""
    sections = {}
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        rows = re.findall(r"^\| ([^|]+) \| ([0-9.]+) \|$", body, re.MULTILINE)
        sections[title] = {name: float(value) for name, value in rows}
        assert len(sections[title]) == len(rows), f"two rows of {title} have the same name"
    return sections


class Cost(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        sections = tables()
        self.given = sections["Inputs"]
        self.idle, self.rows = sections["An idle month"], sections["A million rows"]

    def test_an_idle_month_is_the_sum_of_its_ticks(self):
        of = self.given
        sweeps = of["ticks a month"] * of["tasks"]
        seconds = sweeps * of["seconds billed per sweep invocation"] * of["memory of sweep, GB"]
        seconds += of["ticks a month"] * of["seconds billed per fan-out invocation"] * of["memory of fan-out, GB"]
        writes = of["ticks a month"] * of["tables"] * of["DynamoDB write units, per table"]
        reads = sweeps * of["DynamoDB read units, per invocation"]
        # Each of the functions that stay warm, one per task, looks for itself; a tick is a minute.
        looks = of["ticks a month"] / of["minutes between two looks at a secret"] * of["tasks"] * of["secrets that a sweep function reads"]
        logged = of["ticks a month"] * of["tables"] * of["logged bytes per table and tick"]
        month = {
            "Lambda, time": seconds * of["GB-second, x86_64"],
            "Lambda, requests": (sweeps + of["ticks a month"]) / 1e6 * of["million Lambda requests"],
            "DynamoDB, writes": writes / 1e6 * of["million DynamoDB write units"],
            "DynamoDB, reads": reads / 1e6 * of["million DynamoDB read units"],
            "logs": logged / 1e9 * of["GB of logs"],
            "metrics of the functions": (of["metrics of sweep and fan-out"] + of["codes of reasons seen in a month"]) * of["metric and month"],
            "metrics per table": of["metrics per table"] * of["tables"] * of["metric and month"],
            "ten alarms": 10 * of["alarm and month"],
            "two secrets": of["secrets that a sweep function reads"] * of["secret and month"],
            "Secrets Manager, requests": looks / 1e4 * of["10,000 requests to Secrets Manager"],
        }
        month = {name: round(dollars, 2) for name, dollars in month.items()}
        month["altogether"] = round(sum(month.values()), 2)
        without = "without metrics per table (`TABLESWEEP_TABLE_METRICS=off`)"
        month[without] = round(month["altogether"] - month["metrics per table"], 2)
        self.assertEqual(self.idle, month)
        self.assertEqual(len(Template(EVERYTHING).of_type("AWS::CloudWatch::Alarm")), 10)

    def test_a_million_rows_cost_their_time_their_commits_and_their_bytes(self):
        of = self.given
        million = {
            "Lambda, time": 1e6 / of["rows per second of a backfill"] * of["memory of sweep, GB"] * of["GB-second, x86_64"],
            "DynamoDB, writes": 1e6 / of["rows per page"] / 1e6 * of["million DynamoDB write units"],
            "through the NAT gateway": 1e6 * of["gzipped bytes per row"] / 1e9 * of["GB through a NAT gateway"],
        }
        # In hundredths of a cent: what the page says must be told from what it would say with other inputs.
        million = {name: round(dollars * 100, 4) for name, dollars in million.items()}
        million["altogether"] = round(sum(million.values()), 4)
        self.assertEqual(self.rows, million)

    def test_what_is_assumed_of_the_deployment_is_what_the_template_deploys_by_default(self):
        of, template = self.given, Template(REQUIRED)
        functions = template.of_type("AWS::Lambda::Function")
        memory = {name: function["MemorySize"] / 1024 for name, function in functions.items()}
        self.assertEqual((memory["SweepFunction"], memory["FanOutFunction"]), (of["memory of sweep, GB"], of["memory of fan-out, GB"]))
        (schedule,) = template.of_type("AWS::Scheduler::Schedule").values()
        self.assertEqual(schedule["ScheduleExpression"], "rate(1 minute)")
        self.assertEqual(of["ticks a month"], 30 * 24 * 60)

    def test_what_the_text_says_follows_from_the_inputs(self):
        of, text = self.given, " ".join(TEXT.split())
        requests = of["tables"] * of["requests to the source, per table"] * 60
        busy = of["seconds billed per sweep invocation"] * 1000 / of["CPU of an invocation, ms"]
        self.assertAlmostEqual(busy, 30, delta=5)
        for said in (
            "the processor is used for a thirtieth of it",
            f"Twenty tables that are looked at once a minute make {requests:,.0f} requests an hour",
            f"at {of['rows per second of a backfill']:,.0f} rows a second",
        ):
            self.assertIn(said, text)


if __name__ == "__main__":
    unittest.main()
