"""What .ci/check-bootstrap promises, on small programs that are compiled here."""

import os
import platform
import subprocess
import tempfile
import unittest
from pathlib import Path

from translated import ROOT

CHECK = ROOT / ".ci" / "check-bootstrap"
ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "arm64"}[platform.machine()]


class CheckBootstrap(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compile(self, name, source, *arguments):
        file = self.folder / name
        file.with_suffix(".c").write_text(source)
        subprocess.run([os.environ.get("CC", "cc"), file.with_suffix(".c"), "-o", file, *arguments], check=True)
        return file

    def program(self, source="int main(void) { return 0; }", *arguments):
        return self.compile("program", source, *arguments)

    def library(self, soname, version=None):
        """A library that has nothing but `something`, under a name and a version that may be another's."""
        arguments = ["-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{soname}"]
        if version:
            script = self.folder / "versions"
            script.write_text(f"{version} {{ global: something; }};")
            arguments.append(f"-Wl,--version-script={script}")
        return self.compile("library.so", "int something(void) { return 0; }", *arguments)

    def check(self, *files):
        return subprocess.run([CHECK, *files], capture_output=True, text=True)

    def assertRefused(self, file, why):
        checked = self.check(file)
        self.assertEqual(checked.returncode, 1, checked)
        self.assertIn(why, checked.stderr)

    def test_a_program_that_needs_nothing_unusual_passes_with_what_is_known_of_it(self):
        file = self.program()
        checked = self.check(file)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        self.assertRegex(checked.stdout, rf"^{file}: {ARCHITECTURE}, glibc 2\.\d+, \d+\.\d MB, \d+\.\d MB zipped\n$")

    def test_a_newer_glibc_is_refused_and_the_one_of_amazon_linux_is_not(self):
        source = "int something(void); int main(void) { return something(); }"
        for version, refused in (("GLIBC_2.34", False), ("GLIBC_2.35", True), ("GLIBC_2.100", True), ("GLIBC_ABI_DT_RELR", True)):
            with self.subTest(version):
                file = self.program(source, self.library("libm.so.6", version))
                if refused:
                    self.assertRefused(file, f"needs {version}")
                else:
                    self.assertEqual(self.check(file).returncode, 0)

    def test_a_library_that_lambda_does_not_have_is_refused_by_name(self):
        source = "int something(void); int main(void) { return something(); }"
        self.assertRefused(self.program(source, self.library("libssl.so.3")), "needs libssl.so.3")

    def test_a_program_with_failpoints_is_refused(self):
        source = 'const char *name = "TABLESWEEP_FAILPOINT"; int main(void) { return name[0] == 0; }'
        self.assertRefused(self.program(source), "failpoints")

    def test_a_program_that_is_too_large_zipped_is_refused(self):
        file = self.program()
        with file.open("ab") as end:
            end.write(os.urandom(50 * 1024 * 1024))
        self.assertRefused(file, "50.0 MB is the limit")

    def test_what_cannot_be_started_is_refused(self):
        text = self.folder / "text"
        text.write_text("#!/bin/sh\n")
        self.assertRefused(text, "no program")
        self.assertRefused(self.folder / "absent", "no program")
        file = self.program()
        file.chmod(0o644)
        self.assertRefused(file, "not executable")

    def test_one_wrong_program_fails_the_check_of_all_of_them(self):
        good = self.program()
        checked = self.check(good, self.folder / "absent", good)
        self.assertEqual(checked.returncode, 1)
        self.assertEqual(len(checked.stdout.splitlines()), 2)

    def test_checking_nothing_is_an_error(self):
        self.assertEqual(self.check().returncode, 2)


if __name__ == "__main__":
    unittest.main()
