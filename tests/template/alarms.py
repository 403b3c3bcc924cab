"""A CloudWatch alarm, as far as the template's alarms need one: is it on, after these values at these times?

CloudWatch looks every minute at the last EvaluationPeriods periods. What it does beyond that (it looks further back for values
while some are missing) only makes an alarm come or go earlier by a period; nothing here depends on it.
"""

import re

COMPARED = {
    "LessThanThreshold": lambda value, threshold: value < threshold,
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
}
STATISTICS = {"Sum": sum, "Maximum": max}


class Alarm:
    def __init__(self, properties):
        self.name = properties["AlarmName"].removeprefix("stack-")
        self.properties = properties
        self.factor = 1
        metric = properties
        if "Metrics" in properties:
            # One metric as a share of a number, and no other form of expression.
            source, share = properties["Metrics"]
            found = re.fullmatch(re.escape(source["Id"]) + r" / \((\d+) \* 1000\)", share["Expression"])
            assert found and not source["ReturnData"], f"{self.name}: an expression that is not known here"
            metric = source["MetricStat"] | source["MetricStat"]["Metric"] | {"Statistic": source["MetricStat"]["Stat"]}
            self.factor = int(found[1]) * 1000
        self.metric, self.period, self.statistic = metric["MetricName"], metric["Period"], STATISTICS[metric["Statistic"]]
        self.dimensions = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
        self.evaluated = properties["EvaluationPeriods"]
        self.needed = properties.get("DatapointsToAlarm", self.evaluated)

    @property
    def threshold(self):
        """The least value, or for an alarm on too little the greatest, that this alarm is about."""
        above = {"LessThanThreshold": -1, "GreaterThanThreshold": 0.01, "GreaterThanOrEqualToThreshold": 0}
        return (self.properties["Threshold"] + above[self.properties["ComparisonOperator"]]) * self.factor

    def is_bad(self, values):
        if not values:
            return self.properties["TreatMissingData"] == "breaching"
        return COMPARED[self.properties["ComparisonOperator"]](self.statistic(values) / self.factor, self.properties["Threshold"])

    def is_on(self, points, at):
        """Whether it is on at the second `at`; `points` are pairs of a second and a value."""
        ends = [at - back * self.period for back in range(self.evaluated)]
        periods = [[value for second, value in points if end - self.period <= second < end] for end in ends]
        return sum(map(self.is_bad, periods)) >= self.needed

    def rings(self, points, since, until):
        """Whether it goes on at any minute between two seconds."""
        return any(self.is_on(points, at) for at in range(since, until, 60))
