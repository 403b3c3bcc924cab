"""What the pages say about deploying, with the SAM CLI's own code: its file of answers, and what it makes of it."""

import contextlib
import io
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import click
from samcli.cli.cli_config_file import ConfigProvider
from samcli.cli.types import CfnParameterOverridesType
from samcli.commands.deploy.command import cli as DEPLOY
from samcli.commands.deploy.deploy_context import DeployContext
from samcli.commands.deploy.guided_config import GuidedConfig
from translated import EVERYTHING, ROOT, SOURCE

PAGES = {path.name: path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]}

# The lines that turn the schedule on or off, by page.
SWITCHES = {name: re.findall(r"^ +(sed -i\S* .*ScheduleState.*?)(?:  +#.*)?$", text, re.MULTILINE) for name, text in PAGES.items()}


class Answers(unittest.TestCase):
    """A folder with the samconfig.toml of the repository, in which `sam deploy --guided` has been run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in ("samconfig.toml", "template.yaml"):
            shutil.copy(ROOT / name, self.folder / name)
        self.given = {name: str(EVERYTHING.get(name, declared.get("Default", ""))) for name, declared in SOURCE["Parameters"].items()}
        self.given["ScheduleState"] = "DISABLED"
        answers = {name: {"Value": value, "Hidden": False} for name, value in self.given.items()}
        with click.Context(DEPLOY, info_name="deploy"), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            GuidedConfig(str(self.folder / "template.yaml"), "parameters").save_config(answers)

    def deployed(self, *overrides):
        """The parameters that `sam deploy` sends to CloudFormation, None where it asks for the value of before."""
        with click.Context(DEPLOY, info_name="deploy"):
            kept = ConfigProvider(section="parameters", cmd_names=["deploy"])(self.folder / "samconfig.toml", "default", ["deploy"])
        named = CfnParameterOverridesType().convert(overrides or kept["parameter_overrides"], None, None)
        merged = DeployContext.merge_parameters(SOURCE, named)
        return {one["ParameterKey"]: one.get("ParameterValue") for one in merged}

    def run_switch(self, command):
        subprocess.run(command, shell=True, cwd=self.folder, check=True)

    def test_an_override_on_the_command_line_is_forgotten_by_the_next_deployment(self):
        # Why no page may say it.
        self.assertEqual(self.deployed("ScheduleState=ENABLED")["ScheduleState"], "ENABLED")
        self.assertEqual(self.deployed()["ScheduleState"], "DISABLED")
        for name, text in PAGES.items():
            for line in text.splitlines():
                self.assertFalse(line.startswith("    ") and "--parameter-overrides" in line, f"{name}: {line}")
                self.assertNotIn("`sam deploy --parameter-overrides", line, name)

    def test_the_pages_turn_the_schedule_on_and_off_for_every_deployment_to_come_and_change_nothing_else(self):
        self.assertEqual({name for name, lines in SWITCHES.items() if lines}, {"deploy.md", "runbook.md", "migrating.md"})
        for name, lines in SWITCHES.items():
            for line in lines:
                (state,) = re.findall("ENABLED|DISABLED", line)
                other = {"ENABLED": "DISABLED", "DISABLED": "ENABLED"}[state]
                for before in (state, other):
                    path = self.folder / "samconfig.toml"
                    path.write_text(re.sub("ENABLED|DISABLED", before, path.read_text()))
                    self.assertEqual(self.deployed()["ScheduleState"], before)
                    self.run_switch(line)
                    self.assertEqual(self.deployed(), self.given | {"ScheduleState": state}, f"{name}: {line}")


if __name__ == "__main__":
    unittest.main()
