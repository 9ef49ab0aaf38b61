#include "launcher/doctor/doctor_json.h"

#include <nlohmann/json.hpp>
#include <optional>

namespace hvd {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr int kIndent = 2;

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// Empty: null.
Json TextIf(const std::string& value) { return value.empty() ? Json() : Json(value); }

Json BoolIf(std::optional<bool> value) { return value ? Json(*value) : Json(); }

// Unlimited: the word.
Json NumberIf(std::optional<uint64_t> value) {
  if (!value) return nullptr;
  return *value == kUnlimited ? Json("unlimited") : Json(*value);
}

template <typename List, typename AsJson>
Json ListOf(const List& list, const AsJson& as_json) {
  Json json = Json::array();
  for (const auto& item : list) json.push_back(as_json(item));
  return json;
}

Json DiskJson(const DiskFacts& disk) {
  return {{"total", NumberIf(disk.total)}, {"free", NumberIf(disk.free)}};
}

Json InterfaceJson(const InterfaceFacts& interface) {
  return {{"name", interface.name}, {"mtu", interface.mtu}, {"addresses", interface.addresses}};
}

Json PythonJson(const HostFacts& facts) {
  Json libraries = Json::object();
  for (const auto& [name, version] : facts.libraries) libraries[name] = version;
  return {{"path", TextIf(facts.python_path)},
          {"version", TextIf(facts.python_version)},
          {"trouble", TextIf(facts.python_trouble)},
          {"libraries", libraries}};
}

Json GpuFaultsJson(const HostFacts& facts) {
  Json list = Json::array();
  for (const auto& [number, faults] : facts.gpu_faults) {
    list.push_back({{"gpu", number},
                    {"ecc_errors", faults.ecc_errors},
                    {"memory", TextIf(faults.memory)},
                    {"slowed_by", TextIf(faults.slowed)},
                    {"mode", TextIf(faults.mode)},
                    {"divided", faults.divided},
                    {"processes", faults.processes}});
  }
  return list;
}

Json FactsJson(const HostFacts& facts) {
  return {{"complete", facts.complete},
          {"system", TextIf(facts.system)},
          {"kernel", TextIf(facts.kernel)},
          {"cores", NumberIf(facts.cores)},
          {"cpu_quota", facts.cpu_quota ? Json(*facts.cpu_quota) : Json(nullptr)},
          {"memory", NumberIf(facts.memory_total)},
          {"memory_available", NumberIf(facts.memory_available)},
          {"limits",
           {{"memlock", NumberIf(facts.memlock)},
            {"nofile", NumberIf(facts.nofile)},
            {"nproc", NumberIf(facts.nproc)}}},
          {"logind",
           {{"kill_user_processes", BoolIf(facts.kill_user_processes)},
            {"linger", BoolIf(facts.linger)}}},
          {"python", PythonJson(facts)},
          {"gpus",
           {{"count", facts.gpu_count()},
            {"names", facts.gpus},
            {"driver", TextIf(facts.gpu_driver)},
            {"cuda", TextIf(facts.gpu_cuda)},
            {"links", facts.gpu_links},
            {"faults", GpuFaultsJson(facts)},
            {"trouble", TextIf(facts.gpu_trouble)}}},
          {"rdma", facts.rdma},
          {"directory", TextIf(facts.directory)},
          {"disks",
           {{"directory", DiskJson(facts.directory_disk)},
            {"home", DiskJson(facts.home)},
            {"tmp", DiskJson(facts.tmp)},
            {"shm", DiskJson(facts.shm)}}},
          {"interfaces", ListOf(facts.interfaces, InterfaceJson)}};
}

Json ClockJson(const std::optional<ClockSkew>& clock) {
  if (!clock) return nullptr;
  return {{"skew_seconds", Seconds(clock->skew)},
          {"uncertainty_seconds", Seconds(clock->uncertainty)}};
}

Json HostJson(const HostReport& host) {
  return {{"name", host.name},
          {"other_names", host.other_names},
          {"remote", host.remote},
          {"usable", host.trouble.empty()},
          {"stage", StageName(host.stage)},
          {"trouble", TextIf(host.trouble)},
          {"seconds", Seconds(host.took)},
          {"hvdrun", TextIf(host.version)},
          {"clock", ClockJson(host.clock)},
          {"facts", host.examined ? FactsJson(host.facts) : Json()}};
}

Json SpeedJson(double bytes_a_second) {
  return bytes_a_second > 0 ? Json(static_cast<uint64_t>(bytes_a_second)) : Json();
}

Json PairJson(const DoctorReport& report, const PairReport& pair) {
  return {{"a", report.hosts[pair.a].name},
          {"b", report.hosts[pair.b].name},
          {"trouble", TextIf(pair.trouble)},
          {"address_a", TextIf(pair.address_a)},
          {"address_b", TextIf(pair.address_b)},
          {"round_trip_seconds",
           pair.latency > Duration::zero() ? Json(Seconds(pair.latency)) : Json()},
          {"a_to_b_bytes_per_second", SpeedJson(pair.a_to_b)},
          {"b_to_a_bytes_per_second", SpeedJson(pair.b_to_a)}};
}

Json FindingJson(const Finding& finding) {
  return {{"severity", finding.severity == Severity::kError ? "error" : "warning"},
          {"kind", finding.kind},
          {"hosts", finding.hosts},
          {"what", finding.what},
          {"fix", TextIf(finding.fix)}};
}

}  // namespace

std::string DoctorJson(const DoctorReport& report, const std::vector<Finding>& findings,
                       int exit_code) {
  auto pair_json = [&](const PairReport& pair) { return PairJson(report, pair); };
  const Json json = {{"version", kVersion},
                     {"hvdrun", HVD_VERSION},
                     {"exit_code", exit_code},
                     {"interrupted", report.interrupted},
                     {"directory", report.directory},
                     {"interpreter", report.interpreter},
                     {"all_pairs", report.all_pairs},
                     {"hosts", ListOf(report.hosts, HostJson)},
                     {"pairs", ListOf(report.pairs, pair_json)},
                     {"findings", ListOf(findings, FindingJson)}};
  // Text from hosts may not be valid UTF-8.
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hvd
