// A library whose constructor waits for the fault of a kernel of another one.
extern "C" void PollFault();
__attribute__((constructor)) static void Run() { PollFault(); }
