"""What the alarms promise: they ring for what the next tick does not mend, for nothing else, and at every pace of the schedule."""

import functools
import json
import unittest

from alarms import Alarm
from translated import EVERYTHING, LEAST, MOST, PACES, Template, paced

# Those that look at the outcome of ticks. A catch-up has none.
OF_TICKS = {
    "sweep-age",
    "lag",
    "parked",
    "waiting",
    "sweep-errors",
    "fan-out-errors",
    "throttles",
    "duration",
    "failed-invocations",
}


@functools.cache
def alarms(minutes=1):
    found = [Alarm(one) for one in paced(minutes).of_type("AWS::CloudWatch::Alarm").values()]
    return {alarm.name: alarm for alarm in found}


def ends(minutes, ticks):
    """When the sweeps of ticks end: soon, or late, in turn."""
    return [60 * minutes * tick + (5 if tick % 2 else 40) for tick in range(ticks)]


class Alarms(unittest.TestCase):
    def test_each_alarm_that_was_asked_for_is_there_and_tells_the_topic(self):
        self.assertEqual(set(alarms()), OF_TICKS | {"catch-up-failed"})
        for name, alarm in alarms().items():
            self.assertEqual(alarm.properties["AlarmActions"], [EVERYTHING["AlarmTopicArn"]], name)
            self.assertTrue(alarm.properties["AlarmDescription"], name)
        for alarm in LEAST.of_type("AWS::CloudWatch::Alarm").values():
            self.assertNotIn("AlarmActions", alarm, "there is nobody to tell")

    def test_what_lasts_rings_at_every_pace_within_half_an_hour_or_six_ticks(self):
        for minutes in PACES:
            for name in sorted(OF_TICKS):
                alarm = alarms(minutes)[name]
                lasting = [(second, alarm.threshold) for second in ends(minutes, 60)]
                self.assertTrue(alarm.rings(lasting, 0, max(1800, 6 * 60 * minutes)), f"{name}, every {minutes} min")

    def test_one_bad_tick_wakes_nobody_at_any_pace(self):
        for minutes in PACES:
            for name in sorted(OF_TICKS):
                alarm = alarms(minutes)[name]
                good = 1 if name == "sweep-age" else 0
                for bad in range(20, 23):
                    points = [(second, alarm.threshold if tick == bad else good) for tick, second in enumerate(ends(minutes, 60))]
                    quiet = not alarm.rings(points, 10 * 60 * minutes + 3600, 55 * 60 * minutes)
                    self.assertTrue(quiet, f"{name}, every {minutes} min")

    def test_what_has_healed_is_over_without_a_hand(self):
        for minutes in PACES:
            for name in sorted(OF_TICKS - {"sweep-age"}):
                alarm = alarms(minutes)[name]
                outage = [(second, alarm.threshold * 10) for second in ends(minutes, 60)]
                healed = outage[-1][0]
                self.assertTrue(alarm.is_on(outage, healed), name)
                self.assertFalse(alarm.rings(outage, healed + 6 * alarm.period, healed + 12 * alarm.period), f"{name}, every {minutes} min")
        # What lies in the queue lies there for a fortnight, mended or not.
        queue = alarms()["failed-invocations"]
        self.assertEqual((queue.metric, queue.properties["Statistic"]), ("NumberOfMessagesSent", "Sum"))

    def test_the_age_of_sweeps_rings_when_nothing_is_reported_whatever_the_schedule_is_told(self):
        for minutes in PACES:
            self.assertTrue(alarms(minutes)["sweep-age"].rings([], 0, 60), f"every {minutes} min")
        disabled = Template(EVERYTHING | {"ScheduleState": "DISABLED"}).of_type("AWS::CloudWatch::Alarm")
        self.assertIn(alarms()["sweep-age"].properties, disabled.values(), "the same, with the same topic")

    def test_the_age_of_sweeps_is_quiet_while_ticks_find_tables_in_order_and_rings_when_they_find_none(self):
        # What is in order is decided where the metric is written: a table that is leased, or not due, is.
        self.assertEqual(alarms()["sweep-age"].metric, "InOrder")
        for minutes in PACES:
            alarm = alarms(minutes)["sweep-age"]
            since, until = 4 * alarm.period, 55 * 60 * minutes
            two_tables = [(second, value) for second in ends(minutes, 60) for value in (1, 0)]
            self.assertFalse(alarm.rings(two_tables, since, until), f"every {minutes} min")
            self.assertTrue(alarm.rings([(second, 0) for second, _ in two_tables], since, until), f"every {minutes} min")

    def test_a_schema_that_changed_rings_and_a_table_that_an_operator_holds_does_not(self):
        watched = {alarm.metric for alarm in alarms().values()}
        self.assertIn("Waiting", watched)
        self.assertNotIn("Paused", watched)

    def test_silence_is_an_alarm_for_the_age_of_sweeps_only(self):
        silent = [name for name, alarm in alarms().items() if alarm.properties["TreatMissingData"] == "breaching"]
        self.assertEqual(silent, ["sweep-age"])
        for alarm in alarms().values():
            self.assertIn(alarm.properties["TreatMissingData"], ("breaching", "notBreaching"))

    def test_cloudwatch_takes_the_periods(self):
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
        for minutes in PACES:
            for name, alarm in alarms(minutes).items():
                self.assertEqual(alarm.period % 60, 0, name)
                self.assertLessEqual(alarm.period * alarm.evaluated, 86_400, name)

    def test_an_alarm_looks_at_a_resource_of_this_stack(self):
        names = {
            "function": ["stack-sweep"],
            "FunctionName": ["stack-sweep", "stack-fan-out"],
            "QueueName": ["stack-failed-invocations"],
            "StateMachineArn": ["stack-catch-up"],
        }
        for name, alarm in alarms().items():
            ((key, value),) = alarm.dimensions.items()
            self.assertIn(value, names[key], name)


class Dashboard(unittest.TestCase):
    def setUp(self):
        (board,) = MOST.of_type("AWS::CloudWatch::Dashboard").values()
        self.widgets = json.loads(board["DashboardBody"])["widgets"]

    def test_it_names_functions_and_table(self):
        self.assertGreaterEqual(len(self.widgets), 8)
        shown = json.dumps(self.widgets)
        for name in ("stack-sweep", "stack-catch-up", "stack-fan-out", "stack-cursors", "stack-failed-invocations"):
            self.assertIn(name, shown)

    def test_widgets_do_not_lie_on_one_another(self):
        places = [(one["x"], one["y"], one["width"], one["height"]) for one in self.widgets]
        cells = [(x + i, y + j) for x, y, width, height in places for i in range(width) for j in range(height)]
        self.assertEqual(len(cells), len(set(cells)), "widgets lie on one another")
        self.assertLessEqual(max(x for x, _ in cells), 23)

    def test_a_search_finds_what_both_functions_of_this_stack_wrote_and_nothing_of_another_stack(self):
        metrics = [metric for widget in self.widgets for metric in widget["properties"]["metrics"]]
        searches = [one[0]["expression"] for one in metrics if isinstance(one[0], dict)]
        self.assertEqual(len(searches), 3)
        for search in searches:
            self.assertRegex(search, r"""^SEARCH\('\{[\w,]+\} MetricName="\w+" \(function="stack-sweep" OR function="stack-catch-up"\)', '\w+', 300\)$""")


if __name__ == "__main__":
    unittest.main()
