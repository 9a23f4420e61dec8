//! Sends requests at their scheduled times and measures what comes back.
