// Where the paper is open, and other hardware than the paper's.
#include <algorithm>

#include "sim/device/device_files.h"
#include "sim/study/pipeline/exhibits.h"

namespace gridloom::study::pipeline {
namespace {

/// What a reading changes: keys of the device, arguments of the programs ("--..."), and the list that has the programs'
/// sizes
/// ("sizes=...").
struct Reading {
  std::string sizes = "workloads";
  DeviceKeys keys;
  std::vector<std::string> arguments;
};

Result<Reading> ReadingFrom(const Settings& settings, const std::string& name) {
  Reading reading;
  GL_TRY(texts, settings.List("readings." + name));
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos)
      return Error{settings.name() + ": reading '" + name + "' has '" + text +
                   "', expected KEY=VALUE or --OPTION=VALUE"};
    if (text.starts_with("--")) reading.arguments.push_back(text);
    else if (text.starts_with("sizes=")) reading.sizes = text.substr(equals + 1);
    else reading.keys[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return reading;
}

void Apply(const Reading& reading, Run& run) {
  run.sizes = reading.sizes;
  for (const auto& [key, value] : reading.keys) run.keys[key] = value;
  run.arguments.insert(run.arguments.end(), reading.arguments.begin(), reading.arguments.end());
}

/// A size of L2 that its slices and ways can have, and the model can simulate, as near as possible.
std::uint64_t L2Bytes(const sim::DeviceSpec& device, double kib) {
  constexpr std::uint64_t kLeastSets = 256;  // of all slices
  const std::uint64_t slices = device.timing.l2.slices,
                      unit = slices * device.timing.l2.ways * sim::TimingSpec::kLineBytes;
  const auto sets = static_cast<std::uint64_t>(kib * 1024 / static_cast<double>(unit) + 0.5);
  return std::max(sets, (kLeastSets + slices - 1) / slices) * unit;
}

}  // namespace

Result<Exhibit> VictimTable(const Settings& settings, Runs& runs) {
  GL_TRY(names, settings.List("victims"));
  Exhibit exhibit{
      .name = {},
      .title = "Lines of L2 that go first: speed-up over dka without labels, and bytes of DRAM, in per cent more",
      .columns = {"device", "workload"},
      .drawings = {{.caption = "speed-up over dka without labels", .unit = "%", .names = {1}, .values = {}}}};
  std::vector<Run> wanted;
  for (const std::string& workload : runs.programs()) {
    wanted.push_back({.program = workload, .scheme = kDka, .device = runs.device()});
    for (const std::string& name : names) {
      wanted.push_back({.program = workload, .scheme = kDkaLabelled, .device = runs.device()});
      wanted.back().keys = {{"hardware.tagged-l2.victims", name}};
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    exhibit.columns.push_back(names[i]);
    exhibit.columns.push_back("DRAM " + names[i]);
    exhibit.drawings[0].values.push_back(2 + 2 * i);
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  std::vector<double> sums(2 * names.size());
  std::size_t next = 0;
  for (const std::string& workload : runs.programs()) {
    const Outcome& without = outcomes[next++];
    Row row = {runs.device(), workload};
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Outcome& with = outcomes[next++];
      const double values[] = {Gain(without.cycles, with.cycles), More(without.dram_bytes(), with.dram_bytes())};
      for (std::size_t j = 0; j < 2; ++j) {
        row.push_back(values[j]);
        sums[2 * i + j] += values[j] / static_cast<double>(runs.programs().size());
      }
    }
    exhibit.rows.push_back(std::move(row));
  }
  Row row = {runs.device(), "mean"};
  for (const double sum : sums) row.push_back(sum);
  exhibit.rows.push_back(std::move(row));
  return exhibit;
}

Result<Exhibit> Readings(const Settings& settings, Runs& runs) {
  Exhibit exhibit{.name = {},
                  .title = "Means over all programs under other readings, in per cent over one kernel after the other",
                  .columns = {"device", "reading", "preemptive", "dka", "dka + labels", "DRAM, dka + labels"}};
  GL_TRY(workloads, settings.List("readings_of"));
  std::vector<std::string> names = {"default"};
  for (const std::string& name : settings.Below("readings")) names.push_back(name);
  std::vector<Run> wanted;
  for (const std::string& name : names) {
    Reading reading;
    if (name != "default") {
      GL_TRY(read, ReadingFrom(settings, name));
      reading = std::move(read);
    }
    for (const std::string& workload : workloads) {
      for (const char* scheme : {kSerial, kPreemptive, kDka, kDkaLabelled}) {
        Run run{.program = workload, .scheme = scheme, .device = runs.device()};
        Apply(reading, run);
        wanted.push_back(std::move(run));
      }
    }
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  std::size_t next = 0;
  for (const std::string& name : names) {
    Means preemptive, dka, labelled, dram;
    for (std::size_t i = 0; i < workloads.size(); ++i, next += 4) {
      const Outcome& serial = outcomes[next];
      preemptive.Add(Gain(serial.cycles, outcomes[next + 1].cycles), false);
      dka.Add(Gain(serial.cycles, outcomes[next + 2].cycles), false);
      labelled.Add(Gain(serial.cycles, outcomes[next + 3].cycles), false);
      dram.Add(More(serial.dram_bytes(), outcomes[next + 3].dram_bytes()), false);
    }
    exhibit.rows.push_back({runs.device(), name, preemptive.all(), dka.all(), labelled.all(), dram.all()});
  }
  return exhibit;
}

/// With and without labels under `leftover`, which needs no pipeline to be found.
Result<Exhibit> Sizes(const Settings& settings, Runs& runs) {
  GL_TRY(devices, settings.List("sizes.devices"));
  GL_TRY(workloads, settings.List("sizes.workloads"));
  GL_TRY(kibs, settings.Numbers("sizes.l2_kib"));
  Exhibit exhibit{.name = {},
                  .title = "L2 from small to large, without and with labels: means over programs, in per cent",
                  .columns = {"device", "L2 KiB", "serial ms", "dka over serial", "labels add", "DRAM with labels"},
                  .drawings = {{.caption = "what labels add", .unit = "%", .names = {1}, .values = {4}}}};
  std::vector<Run> wanted;
  for (const std::string& device : devices) {
    GL_TRY(spec, sim::LoadDevice(device));
    for (const double kib : kibs) {
      for (const std::string& workload : workloads) {
        for (const char* scheme : {kSerial, kDka, kDkaLabelled}) {
          Run run{.program = workload, .scheme = scheme, .device = device};
          run.keys = {{"l2.size_bytes", std::to_string(L2Bytes(spec, kib))},
                      {"l2.persisting_bytes", "0"},
                      {"l2.max_window_bytes", "0"}};
          wanted.push_back(std::move(run));
        }
      }
    }
  }
  GL_TRY(outcomes, runs.Measure<Outcome>(wanted));
  std::size_t next = 0;
  for (const std::string& device : devices) {
    GL_TRY(spec, sim::LoadDevice(device));
    for (const double kib : kibs) {
      double serial_ms = 0;
      Means dka, labels, dram;
      for (std::size_t i = 0; i < workloads.size(); ++i, next += 3) {
        serial_ms += outcomes[next].cycles / spec.timing.clock.sm_mhz / 1e3;
        dka.Add(Gain(outcomes[next].cycles, outcomes[next + 1].cycles), false);
        labels.Add(Gain(outcomes[next + 1].cycles, outcomes[next + 2].cycles), false);
        dram.Add(More(outcomes[next + 1].dram_bytes(), outcomes[next + 2].dram_bytes()), false);
      }
      exhibit.rows.push_back(
          {device, static_cast<double>(L2Bytes(spec, kib)) / 1024, serial_ms, dka.all(), labels.all(), dram.all()});
    }
  }
  return exhibit;
}

}  // namespace gridloom::study::pipeline
