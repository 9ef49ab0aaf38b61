#include "launcher/doctor/report/host_facts.h"

#include <functional>
#include <sstream>
#include <string_view>

#include "runtime/base/text/number_text.h"

namespace hvd {
namespace {

std::optional<uint64_t> Number(const std::string& text) {
  return text == "unlimited" ? kUnlimited : ParseWhole<uint64_t>(text);
}

std::optional<double> PositiveNumber(const std::string& text) {
  const std::optional<double> value = ParseWhole<double>(text);
  return value && *value > 0 ? value : std::nullopt;
}

std::optional<bool> YesOrNo(const std::string& text) {
  if (text == "yes") return true;
  if (text == "no") return false;
  return std::nullopt;
}

std::optional<InterfaceFacts> Interface(const std::string& text) {
  InterfaceFacts facts;
  std::istringstream words(text);
  if (!(words >> facts.name >> facts.mtu)) return std::nullopt;
  for (std::string address; words >> address;) facts.addresses.push_back(address);
  return facts;
}

using Reader = std::function<void(HostFacts&, const std::string& value)>;

Reader NumberInto(std::optional<uint64_t> HostFacts::*field) {
  return [field](HostFacts& facts, const std::string& value) { facts.*field = Number(value); };
}

Reader TextInto(std::string HostFacts::*field) {
  return [field](HostFacts& facts, const std::string& value) { facts.*field = value; };
}

Reader DiskInto(DiskFacts HostFacts::*disk, std::optional<uint64_t> DiskFacts::*field) {
  return [=](HostFacts& facts, const std::string& value) { facts.*disk.*field = Number(value); };
}

// "3 heat": a fact about GPU 3.
Reader OfGpu(void (*note)(GpuFaults&, const std::string& value)) {
  return [note](HostFacts& facts, const std::string& text) {
    const size_t blank = text.find(' ');
    const auto gpu = ParseWhole<uint32_t>(std::string_view(text).substr(0, blank));
    if (gpu && blank != std::string::npos) note(facts.gpu_faults[*gpu], text.substr(blank + 1));
  };
}

// "0 1 NVLink"
void NoteLink(HostFacts& facts, const std::string& text) {
  std::istringstream words(text);
  uint32_t from = 0, to = 0;
  std::string kind;
  if (words >> from >> to >> std::ws && std::getline(words, kind)) ++facts.gpu_links[kind];
}

const std::map<std::string, Reader, std::less<>>& Readers() {
  using F = HostFacts;
  static const auto* const readers = new std::map<std::string, Reader, std::less<>>{
      {"kernel", TextInto(&F::kernel)},
      {"system", TextInto(&F::system)},
      {"cores", NumberInto(&F::cores)},
      {"cores.quota", [](F& f, const std::string& v) { f.cpu_quota = PositiveNumber(v); }},
      {"memory.total", NumberInto(&F::memory_total)},
      {"memory.available", NumberInto(&F::memory_available)},
      {"limit.memlock", NumberInto(&F::memlock)},
      {"limit.nofile", NumberInto(&F::nofile)},
      {"limit.nproc", NumberInto(&F::nproc)},
      {"logind.kill_user_processes",
       [](F& f, const std::string& v) { f.kill_user_processes = YesOrNo(v); }},
      {"logind.linger", [](F& f, const std::string& v) { f.linger = YesOrNo(v); }},
      {"shm.total", DiskInto(&F::shm, &DiskFacts::total)},
      {"shm.free", DiskInto(&F::shm, &DiskFacts::free)},
      {"tmp.total", DiskInto(&F::tmp, &DiskFacts::total)},
      {"tmp.free", DiskInto(&F::tmp, &DiskFacts::free)},
      {"home.total", DiskInto(&F::home, &DiskFacts::total)},
      {"home.free", DiskInto(&F::home, &DiskFacts::free)},
      {"directory", TextInto(&F::directory)},
      {"directory.total", DiskInto(&F::directory_disk, &DiskFacts::total)},
      {"directory.free", DiskInto(&F::directory_disk, &DiskFacts::free)},
      {"interface",
       [](F& f, const std::string& v) {
         if (auto interface = Interface(v)) f.interfaces.push_back(std::move(*interface));
       }},
      {"rdma", [](F& f, const std::string& v) { f.rdma.push_back(v); }},
      {"gpu", [](F& f, const std::string& v) { f.gpus.push_back(v); }},
      {"gpu.nodes", [](F& f, const std::string& v) { f.gpu_nodes = Number(v).value_or(0); }},
      {"gpu.driver", TextInto(&F::gpu_driver)},
      {"gpu.cuda", TextInto(&F::gpu_cuda)},
      {"torch.cuda", TextInto(&F::torch_cuda)},
      {"nccl.interface", TextInto(&F::nccl_interface)},
      {"gpu.ecc", OfGpu([](GpuFaults& g, const std::string& v) {
         g.ecc_errors = Number(v).value_or(0);
       })},
      {"gpu.memory", OfGpu([](GpuFaults& g, const std::string& v) { g.memory = v; })},
      {"gpu.slowed", OfGpu([](GpuFaults& g, const std::string& v) { g.slowed = v; })},
      {"gpu.mode", OfGpu([](GpuFaults& g, const std::string& v) { g.mode = v; })},
      {"gpu.divided", OfGpu([](GpuFaults& g, const std::string&) { g.divided = true; })},
      {"gpu.process", OfGpu([](GpuFaults& g, const std::string& v) {
         if (const auto pid = ParseWhole<uint32_t>(v)) g.processes.push_back(*pid);
       })},
      {"gpu.link", [](F& f, const std::string& v) { NoteLink(f, v); }},
      {"gpu.trouble", TextInto(&F::gpu_trouble)},
      {"python.path", TextInto(&F::python_path)},
      {"python.version", TextInto(&F::python_version)},
      {"python.trouble", TextInto(&F::python_trouble)},
      {"library",
       [](F& f, const std::string& v) {
         size_t blank = v.find(' ');
         if (blank != std::string::npos) f.libraries[v.substr(0, blank)] = v.substr(blank + 1);
       }},
      {"done", [](F& f, const std::string&) { f.complete = true; }},
  };
  return *readers;
}

}  // namespace

HostFacts ReadHostFacts(const std::vector<std::string>& lines) {
  HostFacts facts;
  for (const std::string& line : lines) {
    size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    auto reader = Readers().find(std::string_view(line).substr(0, equals));
    if (reader != Readers().end()) reader->second(facts, line.substr(equals + 1));
  }
  return facts;
}

std::string InterpreterOf(const std::vector<std::string>& command) {
  for (const std::string& word : command) {
    std::string name = word.substr(word.rfind('/') + 1);
    if (name.starts_with("python") && name.find_first_not_of("python0123456789.") == name.npos &&
        !name.ends_with(".py")) {
      return word;
    }
  }
  return "python3";
}

}  // namespace hvd
