// 3DES: the program of des.h alone.
#include "pagoda/des.h"
#include "pagoda/run.h"

int main(int argc, char** argv) {
  const Options options("3des", "packets encrypted by DES-EDE, a packet a task", argc, argv,
                        {.blocks = true, .vectors = true},
                        {{"size", 8192, 65536, 8, 1 << 24, 8}, {"least", 512, 2048, 8, 1 << 24, 8}});
  const Des kind(options, "size");
  return Run(options, kind).Main();
}
