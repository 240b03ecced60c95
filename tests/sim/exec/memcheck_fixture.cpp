#include "tests/sim/exec/memcheck_fixture.h"

namespace gridloom::test {

std::string KernelText(const std::string& body, const std::string& before, const std::string& target) {
  return ".version 7.8\n.target " + target + "\n.address_size 64\n" + before +
         "\n.visible .entry k(.param .u64 p, .param .u64 q)\n{\n"
         ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<40>; .reg .f32 %f<9>; .reg .b64 %rd<30>;\n"
         "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n"
         "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd3, %r2; mov.u32 %r3, %laneid;\n" +
         body + "\nret;\n}\n";
}

exec::Engine::Options MemcheckRun::Options(std::uint32_t limit, const std::string& tiers,
                                           std::vector<exec::MemcheckReport>& told) {
  exec::Engine::Options options;
  options.memcheck = true;
  options.memcheck_limit = limit;
  options.threads = 2;
  options.tiers = tiers;
  options.on_memcheck = [&told](const exec::MemcheckReport& report) { told.push_back(report); };
  return options;
}

MemcheckRun::MemcheckRun(std::uint32_t limit, const std::string& tiers) : executor_(Options(limit, tiers, told_)) {}

exec::LaunchFault MemcheckRun::Run(const std::string& ptx, exec::Dim3 grid, exec::Dim3 block, std::uint64_t p,
                                   std::uint64_t q, std::uint32_t dynamic_shared_bytes) {
  return executor_.Launch(ptx, "k", grid, block, ParamBlock().Add(p).Add(q), dynamic_shared_bytes);
}

std::string Kinds(const std::vector<exec::MemcheckReport>& reports) {
  std::string text;
  for (const exec::MemcheckReport& report : reports)
    text += (text.empty() ? "" : " ") + std::string(exec::NameOf(report.kind));
  return text;
}

std::string KindsFound(const std::string& ptx, exec::Dim3 block, std::uint32_t dynamic_shared_bytes) {
  MemcheckRun run;
  const std::uint64_t out = run.executor().Upload(std::vector<std::uint32_t>(4096));
  run.Run(ptx, {1, 1, 1}, block, out, out, dynamic_shared_bytes);
  return Kinds(run.told());
}

}  // namespace gridloom::test
