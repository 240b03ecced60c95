// Traced programs in memory, as their files and their sessions with a broker say them: made by chance, read from files,
// changed, said again with right checksums.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "scheduler/protocol/frames.h"
#include "sim/trace/trace_file.h"

namespace gridloom::fuzz {

using Random = std::mt19937_64;
using Bytes = std::vector<std::uint8_t>;

struct Launch {
  trace::LaunchInfo info;
  bool complete = true;
  std::vector<std::pair<std::uint64_t, trace::LoadedCta>> ctas;
};

/// Kernels, launches and calls in the order in which a file has them.
struct Program {
  std::vector<trace::KernelCode> kernels;
  std::vector<Launch> launches;
  std::vector<trace::HostAction> actions;
};

/// A valid one: all classes of instructions but tensor products, all spaces and forms of addresses, events, groups,
/// streams.
Program RandomProgram(Random& random);
/// What of a file can be read.
Program ReadProgram(const std::shared_ptr<trace::TraceFile>& file);

/// Changes fields of the program, whatever that makes of it.
void Change(Program& program, Random& random);
/// Changes bytes of what is said: of chunks before they are compressed, of frames.
void Change(Bytes& bytes, Random& random);

/// The program as a file. `damage`: also some content of some chunk is changed, behind its checksum. CTAs that a
/// CtaEncoder cannot write, as they name what is not there, are left out.
Bytes FileOf(const Program& program, Random& random, bool damage);

struct Frame {
  protocol::FrameKind kind{};
  Bytes bytes;
};
/// Likewise what a program says to the broker's timing model (docs/broker.md).
std::vector<Frame> FramesOf(const Program& program, Random& random, bool damage);

}  // namespace gridloom::fuzz
