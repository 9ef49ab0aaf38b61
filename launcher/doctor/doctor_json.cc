#include "launcher/doctor/doctor_json.h"

#include <cstdio>
#include <optional>
#include <utility>

#include "launcher/driver/error_file.h"

namespace hvd {
namespace {

constexpr int kVersion = 1;

std::string Seconds(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9f", std::chrono::duration<double>(duration).count());
  return text;
}

class Object {
 public:
  Object& Raw(const char* name, const std::string& value) {
    text_ += (text_.empty() ? "{" : ", ") + JsonString(name) + ": " + value;
    return *this;
  }
  Object& Text(const char* name, const std::string& value) { return Raw(name, JsonString(value)); }
  // Empty: null.
  Object& TextIf(const char* name, const std::string& value) {
    return value.empty() ? Raw(name, "null") : Text(name, value);
  }
  Object& Bool(const char* name, bool value) { return Raw(name, value ? "true" : "false"); }
  Object& BoolIf(const char* name, std::optional<bool> value) {
    return value ? Bool(name, *value) : Raw(name, "null");
  }
  Object& Number(const char* name, uint64_t value) { return Raw(name, std::to_string(value)); }
  // Unlimited: the word.
  Object& NumberIf(const char* name, std::optional<uint64_t> value) {
    if (!value) return Raw(name, "null");
    return *value == kUnlimited ? Text(name, "unlimited") : Number(name, *value);
  }
  std::string Close() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

template <typename List, typename AsJson>
std::string ListOf(const List& list, const AsJson& as_json, const char* separator = ", ") {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : separator) + as_json(item);
  return "[" + text + "]";
}

std::string TextsOf(const std::vector<std::string>& list) {
  return ListOf(list, [](const std::string& text) { return JsonString(text); });
}

std::string DiskJson(const DiskFacts& disk) {
  return Object().NumberIf("total", disk.total).NumberIf("free", disk.free).Close();
}

std::string FactsJson(const HostFacts& facts) {
  Object libraries;
  for (const auto& [name, version] : facts.libraries) libraries.Text(name.c_str(), version);
  Object python;
  python.TextIf("path", facts.python_path).TextIf("version", facts.python_version);
  python.TextIf("trouble", facts.python_trouble).Raw("libraries", libraries.Close());
  Object gpus;
  gpus.Number("count", facts.gpu_count()).Raw("names", TextsOf(facts.gpus));
  gpus.TextIf("driver", facts.gpu_driver).TextIf("trouble", facts.gpu_trouble);
  Object limits;
  limits.NumberIf("memlock", facts.memlock).NumberIf("nofile", facts.nofile);
  limits.NumberIf("nproc", facts.nproc);
  Object logind;
  logind.BoolIf("kill_user_processes", facts.kill_user_processes).BoolIf("linger", facts.linger);
  Object disks;
  disks.Raw("directory", DiskJson(facts.directory_disk)).Raw("home", DiskJson(facts.home));
  disks.Raw("tmp", DiskJson(facts.tmp)).Raw("shm", DiskJson(facts.shm));
  Object json;
  json.Bool("complete", facts.complete).TextIf("system", facts.system);
  json.TextIf("kernel", facts.kernel).NumberIf("cores", facts.cores);
  json.NumberIf("memory", facts.memory_total).NumberIf("memory_available", facts.memory_available);
  json.Raw("limits", limits.Close()).Raw("logind", logind.Close()).Raw("python", python.Close());
  json.Raw("gpus", gpus.Close()).Raw("rdma", TextsOf(facts.rdma));
  json.TextIf("directory", facts.directory).Raw("disks", disks.Close());
  json.Raw("interfaces", ListOf(facts.interfaces, [](const InterfaceFacts& interface) {
             return Object()
                 .Text("name", interface.name)
                 .Number("mtu", interface.mtu)
                 .Raw("addresses", TextsOf(interface.addresses))
                 .Close();
           }));
  return json.Close();
}

std::string HostJson(const HostReport& host) {
  Object json;
  json.Text("name", host.name).Raw("other_names", TextsOf(host.other_names));
  json.Bool("remote", host.remote).Bool("usable", host.trouble.empty());
  json.Text("stage", StageName(host.stage)).TextIf("trouble", host.trouble);
  json.Raw("seconds", Seconds(host.took)).TextIf("hvdrun", host.version);
  json.Raw("clock", !host.clock ? "null"
                                : Object()
                                      .Raw("skew_seconds", Seconds(host.clock->skew))
                                      .Raw("uncertainty_seconds", Seconds(host.clock->uncertainty))
                                      .Close());
  json.Raw("facts", host.examined ? FactsJson(host.facts) : "null");
  return json.Close();
}

std::string Speed(double bytes_a_second) {
  return bytes_a_second > 0 ? std::to_string(static_cast<uint64_t>(bytes_a_second)) : "null";
}

std::string PairJson(const DoctorReport& report, const PairReport& pair) {
  Object json;
  json.Text("a", report.hosts[pair.a].name).Text("b", report.hosts[pair.b].name);
  json.TextIf("trouble", pair.trouble);
  json.TextIf("address_a", pair.address_a).TextIf("address_b", pair.address_b);
  json.Raw("round_trip_seconds", pair.latency > Duration::zero() ? Seconds(pair.latency) : "null");
  json.Raw("a_to_b_bytes_per_second", Speed(pair.a_to_b));
  json.Raw("b_to_a_bytes_per_second", Speed(pair.b_to_a));
  return json.Close();
}

std::string FindingJson(const Finding& finding) {
  Object json;
  json.Text("severity", finding.severity == Severity::kError ? "error" : "warning");
  json.Text("kind", finding.kind).Raw("hosts", TextsOf(finding.hosts));
  json.Text("what", finding.what).TextIf("fix", finding.fix);
  return json.Close();
}

}  // namespace

std::string DoctorJson(const DoctorReport& report, const std::vector<Finding>& findings,
                       int exit_code) {
  constexpr const char* kLine = ",\n    ";
  Object json;
  json.Number("version", kVersion).Text("hvdrun", HVD_VERSION);
  json.Number("exit_code", static_cast<uint64_t>(exit_code));
  json.Bool("interrupted", report.interrupted).Text("directory", report.directory);
  json.Text("interpreter", report.interpreter).Bool("all_pairs", report.all_pairs);
  json.Raw("hosts", "\n    " + ListOf(report.hosts, HostJson, kLine));
  json.Raw("pairs",
           "\n    " + ListOf(
                          report.pairs,
                          [&](const PairReport& pair) { return PairJson(report, pair); }, kLine));
  json.Raw("findings", "\n    " + ListOf(findings, FindingJson, kLine));
  return json.Close() + "\n";
}

}  // namespace hvd
