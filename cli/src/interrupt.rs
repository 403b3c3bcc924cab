//! Ctrl-C and SIGTERM: the first asks for an end in good order, the second ends at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Stop;
use crate::output::note;

/// A watch that becomes true at the first signal.
///
/// # Errors
/// The system does not let signals be listened to.
pub fn listen() -> Result<watch::Receiver<bool>, Stop> {
    let failed = |error| Stop::failed(format!("signals cannot be listened to: {error}"));
    let mut interrupts = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminations = signal(SignalKind::terminate()).map_err(failed)?;
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        either(&mut interrupts, &mut terminations).await;
        note("stopping: what is with the sink is awaited and committed; a second signal ends at once");
        stop.send_replace(true);
        either(&mut interrupts, &mut terminations).await;
        std::process::exit(130);
    });
    Ok(stopped)
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}
