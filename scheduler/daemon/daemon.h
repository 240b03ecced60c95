// The broker as a program: its command line, its signals, its log.
#pragma once

namespace gridloom::broker {

/// Runs the broker that `argv` describes until a signal ends it. Gives the exit code: 0, or 125 after a sentence on
/// standard error that says what is wrong.
int RunDaemon(int argc, char** argv);

}  // namespace gridloom::broker
