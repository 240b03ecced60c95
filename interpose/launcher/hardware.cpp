// gridloom hardware: the proposed parts there are, or all about one.
#include <nlohmann/json.hpp>

#include "interpose/launcher/commands.h"
#include "rewriter/support/json.h"
#include "rewriter/support/terminal.h"
#include "sim/hardware/catalog.h"
#include "sim/hardware/reference.h"

namespace gridloom::launcher {
namespace {

using Json = nlohmann::ordered_json;
using hardware::PartKind;

Json ToJson(const PartKind& kind) {
  Json part{{"name", kind.name}, {"summary", kind.summary}, {"source", kind.source}};
  part["keys"] = Json::array();
  for (const hardware::PartKey& key : kind.keys) {
    part["keys"].push_back({{"key", hardware::KeyName(kind, key)},
                            {"default", hardware::ValueText(key, key.value)},
                            {"values", hardware::RangeText(key)},
                            {"unit", key.unit},
                            {"meaning", key.meaning}});
  }
  part["counters"] = Json::array();
  for (const timing::PartCounter& counter : kind.counters) {
    part["counters"].push_back({{"name", counter.name}, {"unit", counter.unit}, {"meaning", counter.meaning}});
  }
  part["stalls"] = Json::array();
  for (const hardware::PartStall& stall : kind.stalls) {
    part["stalls"].push_back({{"name", stall.name}, {"label", stall.label}, {"meaning", stall.meaning}});
  }
  return part;
}

class Hardware final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("part", name_, "a part's name")->type_name("");
    app.add_flag("--json", json_, "print JSON");
    app.add_flag("--markdown", markdown_, "print the page docs/hardware-reference.md");
  }

  int Run() override {
    if (markdown_) {
      Print(hardware::ReferencePage());
      return kExitOk;
    }
    return name_.empty() ? List() : Show();
  }

 private:
  int List() const {
    Json all = Json::array();
    Table table({"name", "what it is"});
    for (const PartKind* const kind : hardware::Kinds()) {
      all.push_back(ToJson(*kind));
      table.Add({std::string(kind->name), std::string(kind->summary)});
    }
    if (json_) {
      Print(JsonText(all, 2) + "\n");
    } else {
      Print(table.Text(0) +
            "\n`gridloom run --timing --hardware NAME`, replay, compare and sweep take them (docs/hardware.md).\n");
    }
    return kExitOk;
  }

  int Show() const {
    const auto found = hardware::FindOrSuggest(name_);
    if (!found.ok()) return Fail(found.error().message);
    const PartKind& kind = **found;
    if (json_) {
      Print(JsonText(ToJson(kind), 2) + "\n");
      return kExitOk;
    }
    Print(Coloured(Colour::kBold, std::string(kind.name)) + "  " + std::string(kind.summary) + "\n" +
          std::string(kind.source) + "\n\n");
    Table keys({"key", ">default", "values", "unit", "meaning"});
    for (const hardware::PartKey& key : kind.keys) {
      keys.Add({hardware::KeyName(kind, key), hardware::ValueText(key, key.value), hardware::RangeText(key),
                std::string(key.unit), std::string(key.meaning)});
    }
    if (!keys.empty()) Print(keys.Text(0) + "\n");
    Table counters({"counter", "unit", "meaning"});
    for (const hardware::PartStall& stall : kind.stalls) {
      counters.Add({std::string(stall.name), "cycles",
                    std::string(stall.meaning) + " (bound by: " + std::string(stall.label) + ")"});
    }
    for (const timing::PartCounter& counter : kind.counters) {
      counters.Add({std::string(counter.name), std::string(counter.unit), std::string(counter.meaning)});
    }
    if (!counters.empty()) Print(counters.Text(0));
    return kExitOk;
  }

  std::string name_;
  bool json_ = false, markdown_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeHardware() { return std::make_unique<Hardware>(); }

}  // namespace gridloom::launcher
