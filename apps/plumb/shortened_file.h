// Data files are mapped into memory. If one is shortened while in use, or its disk has a read error, reading the pages
// that are missing raises SIGBUS.
#pragma once

namespace plumb::app {

/// Makes a read of missing pages end the process with an error message and status 1, from now on.
void report_shortened_files();

}  // namespace plumb::app
