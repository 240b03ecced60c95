// gridloom devices: the virtual GPUs there are, or all about one.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "interpose/launcher/commands.h"
#include "rewriter/support/json.h"
#include "rewriter/support/terminal.h"
#include "sim/device/device_files.h"
#include "sim/hardware/catalog.h"

namespace gridloom::launcher {
namespace {

using Json = nlohmann::ordered_json;

/// A field as JSON has it: numbers and booleans as such, keys nested at their dots.
Json ToJson(const sim::DeviceSpec& spec) {
  Json device;
  device["id"] = spec.id;
  for (const sim::DeviceField& field : sim::DeviceFields()) {
    Json* place = &device;
    std::string_view key = field.key;
    for (std::size_t dot = key.find('.'); dot != std::string_view::npos; dot = key.find('.')) {
      place = &(*place)[std::string(key.substr(0, dot))];
      key.remove_prefix(dot + 1);
    }
    const auto slot = field.slot(const_cast<sim::DeviceSpec&>(spec));
    const bool is_text = std::holds_alternative<std::string*>(slot) ||
                         std::holds_alternative<ComputeCapability*>(slot) ||
                         std::holds_alternative<sim::NamedChoice>(slot);
    const std::string text = sim::FieldText(field, spec);
    (*place)[std::string(key)] = is_text ? Json(text) : Json::parse(text);
  }
  if (!spec.proposed.empty()) device["proposed"] = spec.proposed;
  if (const auto keys = hardware::KeysOf(spec); keys.ok()) {
    for (const hardware::KeyText& key : *keys) {
      const std::string_view name = std::string_view(key.key).substr(std::string_view("hardware.").size());
      const std::size_t dot = name.find('.');
      device["hardware"][std::string(name.substr(0, dot))][std::string(name.substr(dot + 1))] = key.value;
    }
  }
  return device;
}

std::string Bandwidth(const sim::DeviceSpec::Memory& memory) {
  const double gigabytes = 2.0 * memory.clock_mhz * memory.bus_bits / 8 / 1000;
  return std::to_string(static_cast<long>(gigabytes + 0.5)) + " GB/s";
}

/// Boards first, the newest first; then the generic devices in the order of their compute capability.
auto ListOrder(const sim::DeviceSpec& device) {
  const bool generic = device.id == sim::GenericDeviceId(device.compute_capability);
  const int capability = static_cast<int>(device.compute_capability.sm());
  return std::tuple(generic, generic ? capability : -capability, device.id);
}

class Devices final : public Command {
 public:
  void Describe(CLI::App& app) override {
    app.add_option("device", name_, "a device's name, or a YAML file")->type_name("");
    app.add_flag("--json", json_, "print JSON");
  }

  int Run() override { return name_.empty() ? List() : Show(); }

 private:
  int List() const {
    const auto directory = sim::DeviceDirectory();
    if (!directory.ok()) return Fail(directory.error().message);
    std::vector<sim::DeviceSpec> devices;
    int exit_code = kExitOk;
    for (const std::string& id : sim::DeviceIds(*directory)) {
      auto device = sim::LoadDevice(id, *directory);
      if (device.ok()) devices.push_back(*std::move(device));
      else exit_code = Fail(device.error().message);
    }
    std::ranges::sort(devices, {}, ListOrder);
    Json all = Json::array();
    Table table({"name", "cc", ">SMs", ">clock", ">memory", ">bandwidth", ">L2", "what it is"});
    for (const sim::DeviceSpec& device : devices) {
      all.push_back(ToJson(device));
      const bool is_default = device.id == sim::kDefaultDevice;
      table.Add({is_default ? Coloured(Colour::kBold, device.id) : device.id, device.compute_capability.text(),
                 std::to_string(device.sm.count), std::to_string(device.sm.clock_mhz) + " MHz",
                 SizeText(device.memory.size_bytes), Bandwidth(device.memory), SizeText(device.l2.size_bytes),
                 device.description + (is_default ? " (default)" : "")});
    }
    if (json_) {
      Print(JsonText(all, 2) + "\n");
    } else {
      Print(table.Text(0));
      Print("\n`gridloom run --device NAME` takes one of them, or a YAML file of your own (docs/devices.md).\n");
    }
    return exit_code;
  }

  int Show() const {
    const auto device = sim::LoadDevice(name_);
    if (!device.ok()) return Fail(device.error().message);
    if (const Status parts = hardware::Check(*device); !parts.ok()) return Fail(parts.error().message);
    if (json_) {
      Print(JsonText(ToJson(*device), 2) + "\n");
      return kExitOk;
    }
    Table table({"key", ">value", "meaning"});
    for (const sim::DeviceField& field : sim::DeviceFields()) {
      if (field.key == "name" || field.key == "description") continue;
      table.Add({std::string(field.key), sim::FieldText(field, *device), std::string(field.meaning)});
    }
    for (const hardware::KeyText& field : hardware::FieldsOf(*device)) {
      table.Add({field.key, field.value, std::string(hardware::MeaningOf(field.key))});
    }
    Print(Coloured(Colour::kBold, device->name) + "  " + device->description + "\n\n" + table.Text(0));
    return kExitOk;
  }

  std::string name_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDevices() { return std::make_unique<Devices>(); }

}  // namespace gridloom::launcher
