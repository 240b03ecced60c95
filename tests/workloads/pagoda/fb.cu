// FB: the program of fb.h alone.
#include "pagoda/fb.h"
#include "pagoda/run.h"

int main(int argc, char** argv) {
  const Options options("fb", "a bank of filters, a signal a task", argc, argv, {},
                        {{"size", 512, 2048, 1, 1 << 20}, {"taps", 32, 32, 1, 1024}, {"channels", 1, 1, 1, 64}});
  const Fb kind(options, "size");
  return Run(options, kind).Main();
}
