// MB: the program of mb.h alone.
#include "pagoda/mb.h"
#include "pagoda/run.h"

int main(int argc, char** argv) {
  const Options options("mb", "Mandelbrot sets, an image a task", argc, argv, {.blocks = true},
                        {{"size", 32, 64, 1, 4096}, {"cap", 256, 256, 1, 1 << 20}});
  const Mb kind(options, "size");
  return Run(options, kind).Main();
}
