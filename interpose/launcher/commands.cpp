#include "interpose/launcher/commands.h"

#include <cstdio>

#include "rewriter/support/printable.h"

namespace gridloom::launcher {
namespace {

constexpr CommandRow kCommands[] = {
    {"run", "Run an unmodified CUDA program, on a machine without a GPU too.", "[OPTIONS] [--] PROGRAM [ARGUMENTS...]",
     "  gridloom run -- ./vectoradd 1000000\n"
     "  gridloom run --device a100 --summary -- ./app\n"
     "  gridloom run --memory 4G --threads 2 -- ./app  less device memory, fewer host threads\n"
     "  gridloom run --memcheck -- ./app               name each bad access of a kernel\n"
     "  gridloom run --leak-check --memcheck-json found.json --error-exitcode 99 -- ./app\n"
     "  gridloom run --timing --timing-device v100 -- ./app   simulated time: its events read it, a table shows the "
     "kernels\n"
     "  gridloom run --timing --hardware lazy-ctas -- ./app   and with a proposed part of hardware (gridloom "
     "hardware)\n"
     "  gridloom run --trace app.gltrace -- ./app      keep what its kernels did, for replay\n"
     "  gridloom run --log debug --log-file run.log -- ./app\n"
     "  gridloom run --dry-run --device a100 -- ./app  the environment that does the same\n"
     "  gridloom run --connect -- ./app                share a device with others (gridloom daemon)\n"
     "  gridloom run --device real -- ./app            on the GPU of this machine\n",
     MakeRun},
    {"demo", "Run a sample, an ordinary CUDA program that comes along: no toolkit is needed.", "[OPTIONS] [SAMPLE]",
     "  gridloom demo\n"
     "  gridloom demo --list\n"
     "  gridloom demo histogram\n",
     MakeDemo},
    {"inspect", "Show what is in a program, library, fat binary, cubin or PTX file.", "[OPTIONS] FILE",
     "  gridloom inspect ./app\n"
     "  gridloom inspect --details ./app\n"
     "  gridloom inspect --check ./app                 would all kernels run?\n"
     "  gridloom inspect --kernel add ./app            only kernels whose name contains \"add\", with details\n"
     "  gridloom inspect --json kernels.ptx | jq '.containers[].kernels[].name'\n",
     MakeInspect},
    {"rewrite", "Run passes over the PTX of a file: make kernels that run in slices, for example.",
     "[OPTIONS] --pass A,B FILE",
     "  gridloom rewrite kernels.ptx --pass slice -o sliced.ptx\n"
     "  gridloom rewrite kernels.ptx --pass slice --diff          what would change\n"
     "  gridloom rewrite ./app --pass slice --ptx -o sliced.ptx    only the PTX of a program\n"
     "  gridloom rewrite app.fatbin --pass slice -o sliced.fatbin\n"
     "  gridloom rewrite ./app --pass slice --json | jq '.modules[].kernels[]'\n",
     MakeRewrite},
    {"trace", "Show what is in a trace that `run --trace` wrote.", "[OPTIONS] FILE",
     "  gridloom run --trace app.gltrace -- ./app\n"
     "  gridloom trace app.gltrace\n"
     "  gridloom trace --check --json app.gltrace\n",
     MakeTrace},
    {"replay", "Run traces on the timing model of a GPU, and say what takes how long.", "[OPTIONS] TRACE...",
     "  gridloom replay app.gltrace\n"
     "  gridloom replay --device gtx480,v100,h200 app.gltrace\n"
     "  gridloom replay --policy serial,leftover --mix one.gltrace two.gltrace   two programs share a GPU\n"
     "  gridloom replay --device v100,h200 --report report app.gltrace           report/report.html; go on after an "
     "interruption\n"
     "  gridloom replay --set timing.l1.mshrs=16,32,64 --report report app.gltrace\n"
     "  gridloom replay --hardware none --hardware lazy-ctas app.gltrace         without and with a proposed part\n"
     "  gridloom replay --hardware lazy-ctas --set hardware.lazy-ctas.watch=1,2 app.gltrace\n"
     "  gridloom replay --json app.gltrace | jq '.[].counters.dram_read_bytes'\n",
     MakeReplay},
    {"compare", "Run a program once and say what it would take on several devices, under several policies.",
     "[OPTIONS of replay] -- PROGRAM [ARGUMENTS...]",
     "  gridloom compare --device a100,h200 -- ./app 1000000\n"
     "  gridloom compare --device v100 --policy serial,leftover -- ./app\n"
     "  gridloom compare --device gtx480 --hardware none --hardware lazy-ctas --report report -- ./app\n"
     "  gridloom compare --device a100,h200 --trace app.gltrace -- ./app   keep the trace for later replays\n"
     "  gridloom compare --device a100,h200 --json -- ./app | jq '.[].seconds'\n",
     MakeCompare},
    {"experiment", "Reproduce a figure or table of a paper, beside the paper's numbers.", "[OPTIONS] NAME",
     "  gridloom experiment --list\n"
     "  gridloom experiment kernelet-fig13\n"
     "  gridloom experiment kernelet --report kernelet-report    all figures and tables\n"
     "  gridloom experiment kernelet-fig13 --set arrivals.load=1.5 --set arrivals.seed=7\n",
     MakeExperiment},
    {"sweep", "Run the replays that a file describes, here or as array jobs of Slurm.", "[OPTIONS] FILE.yaml",
     "  gridloom sweep study.yaml                      through Slurm where sbatch is found, else here\n"
     "  gridloom sweep --on local --jobs 8 study.yaml\n"
     "  gridloom sweep --hardware none --hardware lazy-ctas study.yaml   without and with a proposed part\n"
     "  gridloom sweep --on slurm --no-wait study.yaml submit only; later:\n"
     "  gridloom sweep --gather study.yaml             the report, and what is missing\n",
     MakeSweep},
    {"daemon", "Share one device among many programs: the broker.", "[OPTIONS]",
     "  gridloom daemon                                share a virtual H200 among this user's programs\n"
     "  gridloom daemon --config gridloom.yaml         limits and tenants from a file\n",
     MakeDaemon},
    {"ps", "List the tenants and programs of a broker.", "[OPTIONS]",
     "  gridloom ps\n"
     "  gridloom ps --json | jq '.tenants[] | {name, device_seconds}'\n",
     MakePs},
    {"top", "Watch the tenants and programs of a broker.", "[OPTIONS]",
     "  gridloom top\n"
     "  gridloom top --interval 5 --count 12 > hour.txt\n",
     MakeTop},
    {"kill", "End programs' places at a broker, or the programs.", "[OPTIONS] PID|TENANT",
     "  gridloom kill 4711                             its CUDA calls fail from now on\n"
     "  gridloom kill --process alice                  and its programs end\n",
     MakeKill},
    {"limits", "Show or change what a tenant of a broker may have, or the broker's policy.", "[OPTIONS] [TENANT]",
     "  gridloom limits alice\n"
     "  gridloom limits alice --weight 2 --memory 4G --cap 50%\n"
     "  gridloom limits --policy priority\n",
     MakeLimits},
    {"devices", "List the virtual devices, or show all about one.", "[OPTIONS] [DEVICE]",
     "  gridloom devices\n"
     "  gridloom devices h200\n"
     "  gridloom devices --json ./my-gpu.yaml\n",
     MakeDevices},
    {"hardware", "List the proposed parts of hardware, or show all about one.", "[OPTIONS] [PART]",
     "  gridloom hardware\n"
     "  gridloom hardware lazy-ctas\n"
     "  gridloom hardware --json | jq '.[].counters[].name'\n"
     "  gridloom hardware --markdown > docs/hardware-reference.md\n",
     MakeHardware},
    {"cache", "Show, shrink, export and import the compiled kernels that are kept.", "[OPTIONS] [ACTION] [FILE]",
     "  gridloom cache\n"
     "  gridloom cache prune --size 200M               keep those used last\n"
     "  gridloom cache export kernels.tar.zst          for another machine of the same kind, or the next run of CI\n"
     "  gridloom cache import kernels.tar.zst\n",
     MakeCache},
    {"doctor", "Say what is wrong with this machine, and the command that mends it.", "[OPTIONS]",
     "  gridloom doctor\n"
     "  gridloom doctor --json\n",
     MakeDoctor},
};

}  // namespace

std::span<const CommandRow> Commands() { return kCommands; }

int Fail(std::string_view message) {
  std::fprintf(stderr, "gridloom: %s\n", PrintableText(message).c_str());
  return kExitFailed;
}

}  // namespace gridloom::launcher
