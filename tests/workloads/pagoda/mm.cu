// MM: the program of mm.h alone.
#include "pagoda/mm.h"
#include "pagoda/run.h"

int main(int argc, char** argv) {
  const Options options("mm", "products of small matrices, a product a task", argc, argv,
                        {.shared = true, .blocks = true}, {{"size", 32, 64, 1, 4096}});
  const Mm kind(options, "size");
  return Run(options, kind).Main();
}
