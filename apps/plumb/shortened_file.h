// Data files are mapped into memory. If one is shortened meanwhile, reading its missing pages raises SIGBUS.
#pragma once

namespace plumb::app {

/// From now on, reading what a mapped file has lost ends the process with an error message and status 1.
void report_shortened_files();

}  // namespace plumb::app
