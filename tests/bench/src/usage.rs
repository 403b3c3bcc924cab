//! What this process has used so far. Each role reads it off itself as its last act.
//!
//! The processor's clock counts user and system time of all threads, those that have ended included, in nanoseconds; the
//! ticks of `/proc/self/stat` are hundredths of a second. The peak is the kernel's high-water mark of the resident
//! set since the program was loaded.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::failed::Failed;

/// Processor time and memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// User and system time of all threads, in seconds.
    pub cpu_seconds: f64,
    /// The highest resident set, in KiB.
    pub peak_rss_kib: u64,
}

impl Usage {
    /// Of this process, so far.
    pub fn own() -> Result<Self, Failed> {
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        let read = |error: &dyn std::fmt::Display| Failed::at("reading /proc/self/status", error);
        let status = std::fs::read_to_string("/proc/self/status").map_err(|error| read(&error))?;
        let peak_rss_kib = peak_of(&status).ok_or_else(|| read(&"there is no line VmHWM; this benchmark runs on Linux only"))?;
        Ok(Self { cpu_seconds: spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9, peak_rss_kib })
    }

    /// The highest resident set, in MiB.
    pub fn peak_mib(&self) -> f64 {
        self.peak_rss_kib as f64 / 1024.0
    }
}

fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_the_high_water_mark_and_not_the_present_size() {
        assert_eq!(peak_of("VmPeak:\t 9 kB\nVmHWM:\t   5124 kB\nVmRSS:\t  12 kB\n"), Some(5124));
        assert_eq!(peak_of("VmRSS:\t  12 kB\n"), None);
    }

    #[test]
    fn work_of_a_thread_that_has_ended_is_counted() {
        let before = Usage::own().expect("usage").cpu_seconds;
        let busy = std::thread::spawn(|| (0..20_000_000_u64).fold(0_u64, |sum, n| std::hint::black_box(sum ^ n.wrapping_mul(31))));
        busy.join().expect("the thread ends");
        let spent = Usage::own().expect("usage").cpu_seconds - before;
        assert!(spent > 0.001, "{spent}");
    }
}
