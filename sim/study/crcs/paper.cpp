// CRCS and PPCS: G. Kim, J. Jeong, J. Kim, M. Stephenson, PACT 2016 (configs/experiments/_crcs.yaml;
// docs/crcs-results.md).
#include "sim/study/paper/paper.h"

#include "sim/study/crcs/exhibits.h"

namespace gridloom::study::crcs {
namespace {

constexpr ExhibitRow<Runs> kExhibits[] = {
    {"fig2", Fig2},     {"fig9", Fig9},         {"fig10", Fig10},         {"fig11", Fig11},
    {"fig12", Fig12},   {"random", Random},     {"profilers", Profilers}, {"storage", Storage},
    {"beyond", Beyond}, {"readings", Readings}, {"pays", Pays},
};
constexpr Scheme kSchemes[] = {{kSerial, kSerial}, {kFifo, kFifo}, {kPpcs, kPpcs}, {kReady, kReady}};

/// Files are read, and written, at the rate of the experiment's file unless the run has another.
Status SetStorage(const Settings& settings, const sim::DeviceSpec&, Run& run) {
  GL_TRY(storage, settings.Number("storage_mb_s"));
  if (!(storage >= 1)) return Error{settings.name() + ": storage_mb_s must be at least 1"};
  run.keys.try_emplace("timing.host.storage_mb_s", std::to_string(static_cast<std::uint64_t>(storage)));
  return {};
}

}  // namespace

/// All traces have both forms of ranges.
extern constinit const Paper kPaper{.name = "crcs",
                                    .version = 2,
                                    .exhibits = kExhibits,
                                    .schemes = kSchemes,
                                    .programs = "workloads",
                                    .trace_options = "--ranges interval,strided",
                                    .tried = kFifo,
                                    .complete = SetStorage};

}  // namespace gridloom::study::crcs
