#include "rewriter/support/json.h"

#include <nlohmann/json.hpp>

#include "interpose/launcher/inspect/accesses.h"
#include "interpose/launcher/inspect/show.h"

namespace gridloom::launcher {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const ParameterReport& parameter) {
  return {{"name", parameter.name},
          {"type", parameter.type},
          {"offset", parameter.offset},
          {"bytes", parameter.bytes},
          {"align", parameter.align}};
}

Json ToJson(const KernelReport& kernel) {
  Json parameters = Json::array();
  for (const ParameterReport& parameter : kernel.parameters) parameters.push_back(ToJson(parameter));
  Json json{{"name", kernel.name},
            {"demangled", kernel.demangled},
            {"parameters", parameters},
            {"parameter_bytes", kernel.parameter_bytes},
            {"registers", kernel.registers},
            {"shared_bytes", kernel.shared_bytes},
            {"dynamic_shared", kernel.dynamic_shared},
            {"local_bytes", kernel.local_bytes},
            {"barriers", kernel.barriers},
            {"launch_bounds", kernel.launch_bounds},
            {"instructions", kernel.instructions},
            {"callee_instructions", kernel.callee_instructions},
            {"system_calls", kernel.system_calls},
            {"unknown_opcodes", kernel.unknown_opcodes}};
  json["live_registers"] = kernel.live_registers;
  for (const PassAnswer& answer : kernel.passes) {
    Json one{{"applies", answer.why_not.empty()}};
    if (!answer.why_not.empty()) one["reason"] = answer.why_not;
    if (answer.line != 0) one["line"] = answer.line;
    for (const passes::PlaceReport& place : answer.places) {
      Json at{{"function", place.function}, {"line", place.loc.line}, {"applies", place.changed}};
      if (!place.reason.empty()) at[place.changed ? "unless" : "reason"] = place.reason;
      one["places"].push_back(std::move(at));
    }
    json["passes"][answer.pass] = std::move(one);
  }
  json["accesses"] = AccessJson(kernel);
  if (!kernel.check.empty()) {
    json["compiles"] = !kernel.refused;
    if (kernel.refused) json["refused"] = kernel.check;
  }
  return json;
}

Json ToJson(const EntryReport& entry) {
  Json json{{"kind", entry.kind},
            {"arch", entry.arch},
            {"compression", entry.compression.empty() ? "none" : entry.compression},
            {"stored_bytes", entry.stored_bytes},
            {"bytes", entry.bytes},
            {"debug", entry.debug},
            {"selected", entry.selected}};
  if (!entry.source_name.empty()) json["source"] = entry.source_name;
  if (!entry.options.empty()) json["options"] = entry.options;
  if (!entry.error.empty()) json["error"] = entry.error;
  return json;
}

Json ToJson(const ContainerReport& container, const InspectView& view) {
  Json json;
  if (!container.member.empty()) json["member"] = container.member;
  if (!container.section.empty()) json["section"] = container.section;
  json["relocatable"] = container.relocatable;
  json["entries"] = Json::array();
  for (const EntryReport& entry : container.entries) json["entries"].push_back(ToJson(entry));
  json["kernels"] = Json::array();
  for (const KernelReport& kernel : container.kernels) {
    if (Wanted(view, kernel.name, kernel.demangled)) json["kernels"].push_back(ToJson(kernel));
  }
  if (!container.machine_kernels.empty()) json["machine_kernels"] = Json::array();
  for (const MachineKernelReport& kernel : container.machine_kernels) {
    if (!Wanted(view, kernel.name, kernel.demangled)) continue;
    json["machine_kernels"].push_back({{"name", kernel.name},
                                       {"demangled", kernel.demangled},
                                       {"code_bytes", kernel.code_bytes},
                                       {"shared_bytes", kernel.shared_bytes}});
  }
  json["device_functions"] = container.device_functions;
  json["global_bytes"] = container.global_bytes;
  json["constant_bytes"] = container.constant_bytes;
  if (!container.diagnostics.empty()) json["diagnostics"] = container.diagnostics;
  return json;
}

}  // namespace

std::string ReportJson(const InspectReport& report, const InspectView& view) {
  Json json{{"file", report.file}, {"format", report.format}, {"device", report.device.text()}};
  if (!report.note.empty()) json["note"] = report.note;
  json["containers"] = Json::array();
  for (const ContainerReport& container : report.containers) json["containers"].push_back(ToJson(container, view));
  // Names in a broken file need not be UTF-8.
  return JsonText(json, 2) + "\n";
}

}  // namespace gridloom::launcher
