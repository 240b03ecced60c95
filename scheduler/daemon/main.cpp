// gridloom-daemon: the broker as a program of its own, because the tool it belongs to links a compiler that nobody
// wants in a process that many tenants talk to. `gridloom daemon` starts it.
#include "scheduler/daemon/daemon.h"

int main(int argc, char** argv) { return gridloom::broker::RunDaemon(argc, argv); }
