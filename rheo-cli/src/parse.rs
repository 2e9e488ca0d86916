//! What people write on the command line: filters, instants, durations.
