#include "launcher/external/mpi/mpi_command.h"

#include <wordexp.h>

#include <algorithm>
#include <utility>

#include "configs/message_text.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using Args = std::vector<std::string>;

// From so many hosts on, Open MPI starts its daemons without a tree, which some sshd refuse.
constexpr size_t kManyHosts = 64;

struct HostRanks {
  std::string host;
  uint32_t ranks = 0;
};

std::vector<HostRanks> RanksOfHosts(const Plan& plan) {
  std::vector<HostRanks> hosts;
  for (uint32_t host : plan.UsedHosts()) hosts.push_back({plan.hosts[host], 0});
  size_t at = 0;
  for (const Placement& place : plan.ranks) {
    if (plan.hosts[place.host] != hosts[at].host) ++at;
    ++hosts[at].ranks;
  }
  return hosts;
}

// "a:2,b:1", "a,b"
std::string HostList(const std::vector<HostRanks>& hosts, bool with_ranks) {
  std::string list;
  for (const HostRanks& host : hosts)
    list += (list.empty() ? "" : ",") + host.host + (with_ranks ? Format(":{}", host.ranks) : "");
  return list;
}

// Whether all hosts have as many ranks as the first, and the last one at most as many.
bool AreEven(const std::vector<HostRanks>& hosts) {
  for (size_t at = 0; at < hosts.size(); ++at) {
    const bool last = at + 1 == hosts.size();
    if (hosts[at].ranks > hosts[0].ranks || (!last && hosts[at].ranks < hosts[0].ranks))
      return false;
  }
  return true;
}

std::string SshArguments(const Settings& settings) {
  std::string text;
  if (settings.ssh_port != 0) text += Format("-p {}", settings.ssh_port);
  if (!settings.ssh_identity_file.empty())
    text += (text.empty() ? "-i " : " -i ") + settings.ssh_identity_file;
  return text;
}

void Append(Args& command, const Args& more) {
  command.insert(command.end(), more.begin(), more.end());
}

// Open MPI and Spectrum MPI, which is derived from it.
void AppendOpenMpi(Args& command, const std::vector<HostRanks>& hosts, const Settings& settings) {
  Append(command, {"-H", HostList(hosts, /*with_ranks=*/true)});
  if (hosts.size() >= kManyHosts)
    Append(command, {"-mca", "plm_rsh_no_tree_spawn", "true", "-mca", "plm_rsh_num_concurrent",
                     std::to_string(hosts.size())});
  if (!settings.rsh_agent.empty()) Append(command, {"-mca", "plm_rsh_agent", settings.rsh_agent});
  if (const std::string ssh = SshArguments(settings); !ssh.empty())
    Append(command, {"-mca", "plm_rsh_args", ssh});
  if (!settings.network_interfaces.empty())
    Append(command, {"-mca", "btl_tcp_if_include", settings.network_interfaces});
}

// MPICH and Intel MPI, which both use Hydra.
Status AppendHydra(Args& command, const MpiVersion& version, const std::vector<HostRanks>& hosts,
                   const Settings& settings) {
  if (AreEven(hosts)) {
    Append(command, {"-ppn", std::to_string(hosts[0].ranks), "-hosts", HostList(hosts, false)});
  } else if (version.flavor == MpiFlavor::kMpich) {
    Append(command, {"-hosts", HostList(hosts, true)});
  } else {
    return InvalidArgument(version.name + " starts as many ranks on each host, and the plan is " +
                           HostList(hosts, true) + "; give all hosts as many slots");
  }
  if (settings.network_interfaces.find(',') != std::string::npos)
    return InvalidArgument(version.name + " takes one network interface, and " +
                           Printable(settings.network_interfaces) +
                           " are more; name one with --network-interfaces");
  if (!settings.network_interfaces.empty())
    Append(command, {"-iface", settings.network_interfaces});
  if (!settings.rsh_agent.empty())
    Append(command, {"-bootstrap", "ssh", "-bootstrap-exec", settings.rsh_agent});
  if (const std::string ssh = SshArguments(settings); !ssh.empty())
    Append(command, {"-bootstrap", "ssh", "-bootstrap-exec-args", ssh});
  return Status::Ok();
}

Args UsualBinding(MpiFlavor flavor) {
  switch (flavor) {
    case MpiFlavor::kOpenMpi:
    case MpiFlavor::kMpich: return {"-bind-to", "none", "-map-by", "slot"};
    case MpiFlavor::kSpectrum:
      return {"-bind-to", "socket", "-map-by", "socket", "-rank-by", "core"};
    case MpiFlavor::kIntel: return {};
  }
  return {};
}

// horovodrun passes ^openib, which replaces what the site has excluded: with Debian's Open MPI that
// re-enables uct and ofi, and MPI_Init takes three times as long.
Args UsualTransports(MpiFlavor flavor, bool tcp) {
  if (flavor == MpiFlavor::kOpenMpi)
    return {"-mca", "pml", "ob1", "-mca", "btl", "^openib,uct,ofi"};
  return flavor == MpiFlavor::kSpectrum && tcp ? Args{"-tcp"} : Args{};
}

}  // namespace

Result<std::vector<std::string>> SplitMpiArgs(const std::string& setting, const std::string& text) {
  wordexp_t split{};
  Args words;
  const int error = ::wordexp(text.c_str(), &split, WRDE_NOCMD);
  for (size_t at = 0; error == 0 && at < split.we_wordc; ++at)
    words.emplace_back(split.we_wordv[at]);
  if (error == 0) ::wordfree(&split);
  if (error == 0) return words;
  return InvalidArgument(setting + "=" + Quoted(text) +
                         " cannot be split into words: it has an unfinished quote, or a character "
                         "that a shell would act on; put quotes around it");
}

Result<std::vector<std::string>> MpiCommand(const std::string& program, const MpiVersion& version,
                                            const Plan& plan, const Settings& settings,
                                            const std::vector<std::string>& process) {
  Result<Args> more = SplitMpiArgs("--mpi-args", settings.mpi_args);
  if (!more.ok()) return more.status();
  Result<Args> binding = SplitMpiArgs("--binding-args", settings.binding_args);
  if (!binding.ok()) return binding.status();
  const std::vector<HostRanks> hosts = RanksOfHosts(plan);
  Args command = {program};
  const bool hydra = version.flavor == MpiFlavor::kMpich || version.flavor == MpiFlavor::kIntel;
  if (!hydra) command.emplace_back("--allow-run-as-root");
  Append(command, {"-np", std::to_string(plan.size())});
  if (hydra) {
    if (Status may = AppendHydra(command, version, hosts, settings); !may.ok()) return may;
  } else {
    AppendOpenMpi(command, hosts, settings);
  }
  Append(command, binding->empty() ? UsualBinding(version.flavor) : *binding);
  Append(command, UsualTransports(version.flavor, settings.tcp));
  Append(command, *more);
  Append(command, process);
  return command;
}

std::string ResourceFile(const Plan& plan, const std::vector<uint32_t>& cpus) {
  std::string text = "overlapping_rs: allow\ncpu_index_using: logical\n";
  for (const Placement& place : plan.ranks) {
    if (place.local_rank == 0) text += "\n";
    const uint32_t here = std::max(1U, cpus[place.host]);
    const uint32_t width = std::max(1U, here / std::max(1U, place.local_size));
    const uint32_t first = place.local_rank * width % here;
    text += Format("rank: {}: {{ hostname: {}; cpu: {{{}-{}}} ; gpu: * ; mem: * }}\n", place.rank,
                   plan.hosts[place.host], first, first + width - 1);
  }
  return text;
}

Result<std::vector<std::string>> JsrunCommand(const std::string& program,
                                              const std::string& resource_file,
                                              const Settings& settings,
                                              const std::vector<std::string>& process) {
  Result<std::vector<std::string>> binding = SplitMpiArgs("--binding-args", settings.binding_args);
  if (!binding.ok()) return binding.status();
  std::vector<std::string> command = {program};
  if (binding->empty()) *binding = {"--erf_input", resource_file};
  command.insert(command.end(), binding->begin(), binding->end());
  std::string mpi_args = settings.tcp ? "-tcp" : "";
  if (!settings.mpi_args.empty()) mpi_args += (mpi_args.empty() ? "" : " ") + settings.mpi_args;
  if (!mpi_args.empty()) command.insert(command.end(), {"--smpiargs", mpi_args});
  command.insert(command.end(), process.begin(), process.end());
  return command;
}

}  // namespace hvd
