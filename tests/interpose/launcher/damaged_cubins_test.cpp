// Damaged cubins through `inspect` and `rewrite`: no signal ends them, what they refuse they say, and what rewrite
// leaves is the file with the kernels that it had.
#include <fstream>
#include <iterator>

#include "rewriter/machine/slice/cubin_file.h"
#include "tests/interpose/launcher/installation.h"
#include "tests/rewriter/machine/damage.h"

namespace gridloom::launcher {
namespace {

constexpr std::pair<unsigned, unsigned> kArchitectures[] = {{75, 75}, {80, 80}, {86, 80}, {89, 80}};
constexpr int kFirstSignal = 128;

machine::DamagedBytes BytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = image::AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

/// All code that the damaged file has is in the other one.
void CheckCodeIsThere(const machine::DamagedBytes& damaged, const fs::path& out) {
  const auto before = machine::CubinFile::Read(damaged), after = machine::CubinFile::Read(BytesOf(out));
  if (!before.ok()) {
    CHECK(BytesOf(out) == damaged);
    return;
  }
  REQUIRE(after.ok());
  for (std::size_t number = 0; number < before->sections().size(); ++number) {
    if (!before->sections()[number].name.starts_with(".text.")) continue;
    CHECK(after->sections()[number].data == before->sections()[number].data);
  }
}

TEST_CASE("DamagedCubins_AreRefusedByNameOrRewritten") {
  constexpr unsigned kRounds = 2;
  const Installation tree;
  unsigned refused = 0, rewritten = 0;
  for (const auto& [sm, file_sm] : kArchitectures) {
    const auto cubin =
        machine::ForArchitecture(BytesOf("tests/rewriter/machine/slices.sm_" + std::to_string(file_sm) + ".cubin"), sm);
    machine::Damage damage(sm + 1000);
    for (unsigned round = 0; round < kRounds * machine::Damage::kKinds.size(); ++round) {
      const std::string_view kind = machine::Damage::kKinds[round % machine::Damage::kKinds.size()];
      INFO("sm_" << sm << " " << kind << " " << round);
      const auto damaged = damage.Make(cubin, kind);
      const fs::path out = tree.root() / "out.cubin";
      fs::remove(out);
      std::ofstream(tree.root() / "k.cubin", std::ios::binary)
          .write(reinterpret_cast<const char*>(damaged.data()), static_cast<std::streamsize>(damaged.size()));
      const Outcome shown = tree.Run("inspect --machine-code _Z k.cubin");
      CHECK(shown.exit_code < kFirstSignal);
      CHECK_FALSE(shown.output.empty());
      const Outcome outcome = tree.Run("rewrite k.cubin --slice --slice-machine-code -o out.cubin");
      CHECK(outcome.exit_code < kFirstSignal);
      CHECK_FALSE(outcome.output.empty());
      if (outcome.exit_code != 0) {
        ++refused;
        continue;
      }
      rewritten += Has(outcome, "$gridloom_slice") ? 1 : 0;
      CheckCodeIsThere(damaged, out);
    }
  }
  INFO(refused << " refused, " << rewritten << " rewritten");
  CHECK(refused != 0);
  CHECK(rewritten != 0);
}

}  // namespace
}  // namespace gridloom::launcher
