#include "configs/launcher_words.h"

#include <algorithm>
#include <vector>

namespace hvd {
namespace {

constexpr std::string_view kNoNodes =
    "hvdrun runs on the nodes of the allocation, or on hosts that are named: -H a:4,b:4";
constexpr std::string_view kNoRendezvous = "ranks meet through hvdrun";
constexpr std::string_view kLabels = "every line has its rank in front; --prefix sets another form";
constexpr std::string_view kProgram = "a command is started as it is";
constexpr std::string_view kEnvironment =
    "the ranks get the whole environment; -x NAME=value sets a variable";
constexpr std::string_view kEqualRanks =
    "hosts are filled in order, each with its slots: -H a:4,b:4 has four ranks on each";
constexpr std::string_view kAllocation =
    "say it to sbatch or salloc; hvdrun runs on the nodes of the allocation";
constexpr std::string_view kTraining =
    "it is a setting of the training script; say it there, or in Accelerator(...)";
constexpr std::string_view kKilled = "when a rank fails, hvdrun ends all of them";
constexpr std::string_view kFiles =
    "--output-filename DIR writes DIR/rank.N/stdout and stderr, beside the screen";
constexpr std::string_view kSsh =
    "hosts are reached over SSH as ~/.ssh/config says, else by "
    "--launcher or --rsh-agent";

std::vector<LauncherWord> MakeWords() {
  using enum WordMeaning;
  return {
      // Number of processes.
      {"-n", "mpirun, srun", kAlias, "-np"},
      {"--np", "mpirun", kAlias, "-np"},
      {"--ntasks", "srun", kAlias, "-np"},
      {"--num_processes", "accelerate", kAlias, "-np"},
      {"--nproc-per-node", "torchrun", kAlias, "-np", 1, {}, true},
      {"--npernode", "mpirun", kAlias, "-np", 1, {}, true},
      {"-ppn", "mpirun (MPICH)", kAlias, "-np", 1, {}, true},
      {"--ntasks-per-node", "srun", kAlias, "-np", 1, {}, true},
      {"--num_gpus", "deepspeed", kAlias, "-np", 1, {}, true},
      {"-c", "mpirun, srun", kRefused,
       "for mpirun the number of processes, -np 4; for srun the cores of one, which --bind-to core "
       "shares out"},
      {"-N", "mpirun, srun", kRefused,
       "for mpirun the processes of a host, -H a:4,b:4; for srun the nodes, which are those of the "
       "allocation"},
      {"--pernode", "mpirun", kRefused, "one rank on each host is -H a:1,b:1", 0},
      {"--npersocket", "mpirun", kRefused, kEqualRanks},
      {"--cpus-per-task", "srun", kRefused,
       "--bind-to core gives each rank its share of the cores, --omp-threads N its threads"},
      {"--num_cpu_threads_per_process", "accelerate", kAlias, "--omp-threads"},
      {"--gpus-per-task", "srun", kRefused, "--gpus one gives each rank one GPU"},
      {"--gpus-per-node", "srun", kRefused, kAllocation},
      {"--gres", "srun", kRefused, kAllocation},
      {"--multi_gpu", "accelerate", kAlways, "-np is the number of processes", 0},
      {"--gpu_ids", "accelerate", kRefused,
       "set CUDA_VISIBLE_DEVICES=0,1 in front of hvdrun, and -np 2 --gpus one", 1, "all"},

      // Hosts.
      {"--num_nodes", "deepspeed", kAlias, "--nnodes"},
      {"--num_machines", "accelerate", kAlias, "--nnodes"},
      {"--nodes", "srun", kRefused, kNoNodes, 1, "1"},
      {"--machine_rank", "accelerate", kAlias, "--node-rank"},
      {"--host", "mpirun", kAlias, "-H"},
      {"--machinefile", "mpirun", kAlias, "--hostfile"},
      {"--default-hostfile", "mpirun", kAlias, "--hostfile"},
      {"-f", "mpirun (MPICH)", kRefused, "the file of hosts is --hostfile FILE"},
      {"--nodelist", "srun", kRefused, "name the hosts: -H a:4,b:4"},
      {"-w", "srun", kRefused, "name the hosts: -H a:4,b:4"},
      {"--nodefile", "srun", kRefused, "the file of hosts is --hostfile FILE"},
      {"--include", "deepspeed", kRefused,
       "name the hosts and how many ranks each has: -H a:2,b:4"},
      {"-e", "deepspeed, srun", kRefused,
       "for deepspeed hosts to leave out: name the others, -H a:4,b:4; for srun a file, "
       "--output-filename DIR"},
      {"--exclude", "deepspeed, srun", kRefused, "name the other hosts: -H a:4,b:4"},
      {"--standalone", "torchrun", kAlways, "ranks always meet through hvdrun", 0},
      {"--no_ssh_check", "deepspeed", kAlways, "hvdrun reports a host that it cannot reach", 0},
      {"--no_ssh", "deepspeed", kRefused, kSsh, 0},
      {"--force_multi", "deepspeed", kAlways, "hosts that are named are used", 0},
      {"--launcher_args", "deepspeed", kRefused,
       "options of ssh are those of ~/.ssh/config, options of mpirun --mpi-args=\"...\""},
      {"--same_network", "accelerate", kAlways, "hvdrun finds out how hosts reach each other", 0},
      {"--local-addr", "torchrun", kRefused, "--network-interfaces takes names and ranges"},
      {"-iface", "mpirun (MPICH)", kAlias, "--network-interfaces"},
      {"--oversubscribe", "mpirun", kNoEffect,
       "slots are what you say they are: -H localhost:8 has eight, on any number of cores", 0},
      {"--nooversubscribe", "mpirun", kAlways, "no host gets more ranks than it has slots", 0},
      {"--use-hwthread-cpus", "mpirun", kRefused, kEqualRanks, 0},
      {"--overlap", "srun", kAlways, "hvdrun's steps share the nodes of the allocation", 0},
      {"--exclusive", "srun", kRefused, kAllocation, 0},
      {"--partition", "srun", kRefused, kAllocation},
      {"--account", "srun", kRefused, kAllocation},
      {"-A", "srun", kRefused, kAllocation},
      {"--qos", "srun", kRefused, kAllocation},
      {"--mem", "srun", kRefused, kAllocation},
      {"--job-name", "srun", kRefused, kAllocation},
      {"-J", "srun", kRefused, kAllocation},
      {"--constraint", "srun", kRefused, kAllocation},
      {"--jobid", "srun", kRefused,
       "hvdrun runs in the allocation in which it is started: srun --jobid=N --pty bash, then "
       "hvdrun"},

      // Placement.
      {"--map-by", "mpirun", kRefused, kEqualRanks, 1, "slot"},
      {"--rank-by", "mpirun", kRefused, kEqualRanks, 1, "slot"},
      {"--rankfile", "mpirun", kRefused, kEqualRanks},
      {"--distribution", "srun", kRefused, kEqualRanks, 1, "block"},
      {"--report-bindings", "mpirun", kRefused, "--print-env shows the cores of rank 0", 0},
      {"--cpu-bind", "srun", kRefused, "--bind-to none, core, numa or gpu"},
      {"--cpu-set", "mpirun", kRefused, "taskset -c 0-3 hvdrun ... leaves it these cores"},
      {"--gpu-bind", "srun", kRefused, "--gpus one or near, --bind-to gpu"},
      {"--numa-binding", "torchrun", kRefused, "--bind-to numa or gpu"},
      {"--enable_cpu_affinity", "accelerate", kRefused, "--bind-to gpu", 0},
      {"--bind_cores_to_rank", "deepspeed", kRefused, "--bind-to core", 0},
      {"--wdir", "mpirun", kAlias, "--chdir"},
      {"-wd", "mpirun", kAlias, "--chdir"},
      {"-D", "srun", kAlias, "--chdir"},

      // Command.
      {"--no-python", "torchrun, accelerate, deepspeed", kAlways, kProgram, 0},
      {"--run-path", "torchrun", kAlways, "each rank is a process of its own that runs the script",
       0},
      {"--no_local_rank", "deepspeed", kAlways, "no argument is added to the command", 0},
      {"--allow-run-as-root", "mpirun", kAlways, "hvdrun runs for every user", 0},
      {"--start-method", "torchrun", kNoEffect, "each rank is a program of its own"},
      {"--role", "torchrun", kNoEffect, "ROLE_NAME is 'default' in every rank", 1, "default"},
      {"--app", "mpirun", kRefused, "all ranks run one command; it can look at $RANK: sh -c '...'"},
      {"--multi-prog", "srun", kRefused,
       "all ranks run one command; it can look at $RANK: sh -c '...'", 0},
      {"--pty", "srun", kRefused, "the terminal is hvdrun's; rank 0 reads its input", 0},
      {"--preload-binary", "mpirun", kRefused, "the command has to exist on each host", 0},
      {"--env", "mpirun (MPICH)", kRefused, "say -x NAME=value"},
      {"-genv", "mpirun (MPICH)", kRefused, "say -x NAME=value", 2},
      {"-genvall", "mpirun (MPICH)", kAlways, kEnvironment, 0},
      {"--export", "srun", kRefused, kEnvironment, 1, "ALL"},

      // Rendezvous.
      {"--rdzv-backend", "torchrun, accelerate", kNoEffect, kNoRendezvous},
      {"--rdzv-endpoint", "torchrun", kAlias, "--master-addr"},
      {"--rdzv-id", "torchrun", kNoEffect, kNoRendezvous},
      {"--rdzv-conf", "torchrun, accelerate", kNoEffect, kNoRendezvous},
      {"--main_process_ip", "accelerate", kAlias, "--master-addr"},
      {"--main_process_port", "accelerate", kAlias, "--master-port"},
      {"--mca", "mpirun", kRefused,
       "under hvdrun --mpi say --mpi-args=\"--mca ...\"; without --mpi there is no MPI to set", 2},
      {"--mpi=TYPE", "srun", kRefused, "leave it out: ranks meet through hvdrun, not through PMI"},
      {"--tune", "mpirun", kRefused, "under hvdrun --mpi say --mpi-args=\"--tune FILE\""},

      // Failures and time limits.
      {"--monitor-interval", "torchrun, accelerate", kNoEffect,
       "hvdrun notices at once when a rank ends"},
      {"--kill-on-bad-exit", "srun", kAlways, kKilled, 0},
      {"-K", "srun", kAlways, kKilled, 0},
      {"--wait", "srun", kNoEffect, kKilled},
      {"--enable-recovery", "mpirun", kRefused, "say --elastic", 0},
      {"--no-kill", "srun", kRefused, "say --elastic", 0},
      {"--elastic_training", "deepspeed", kRefused,
       "say --elastic, and --min-np and --max-np for its bounds", 0},
      {"--min_elastic_nodes", "deepspeed", kRefused, "bounds are in ranks: --min-np N"},
      {"--max_elastic_nodes", "deepspeed", kRefused, "bounds are in ranks: --max-np N"},
      {"--time", "srun", kRefused, "say --timeout SECONDS"},
      {"-t", "srun, torchrun", kRefused,
       "for srun the limit of time, --timeout SECONDS; for torchrun what is shown on the screen, "
       "which is always everything"},
      {"--autotuning", "deepspeed", kRefused, "hvdrun tunes its own runtime: --autotune"},

      // Output.
      {"--tag-output", "mpirun", kAlways, kLabels, 0},
      {"--label", "srun", kAlways, kLabels, 0},
      {"-l", "srun, mpirun (MPICH)", kAlways, kLabels, 0},
      {"--timestamp-output", "mpirun", kAlias, "-prefix-timestamp"},
      {"-prepend-rank", "mpirun (MPICH)", kAlways, kLabels, 0},
      {"--tee", "torchrun, accelerate", kAlways, "output is always shown", 1},
      {"--redirects", "torchrun", kRefused, kFiles, 1, "0"},
      {"-r", "torchrun, srun", kRefused,
       "for torchrun output in files, --output-filename DIR; for srun the first node: -H a:4,b:4"},
      {"--log-dir", "torchrun, accelerate", kAlias, "--output-filename"},
      {"-outfile-pattern", "mpirun (MPICH)", kRefused, kFiles},
      {"--enable_each_rank_log", "deepspeed", kAlias, "--output-filename"},
      {"--output", "srun", kRefused, kFiles},
      {"-o", "srun", kRefused, kFiles},
      {"--error", "srun", kRefused, kFiles},
      {"--input", "srun", kRefused, "--stdin rank0, all or none; a file by < FILE"},
      {"--local-ranks-filter", "torchrun", kRefused,
       "the output of every rank is shown; --output-filename DIR has each by itself, --fold shows "
       "equal lines once"},
      {"--merge-stderr-to-stdout", "mpirun", kRefused, "say 2>&1 behind the command line", 0},
      {"--unbuffered", "srun", kAlways, "output is passed on as it comes", 0},
      {"-u", "srun", kAlways, "output is passed on as it comes", 0},
      {"--xterm", "mpirun", kRefused, kFiles},
      {"--display-map", "mpirun", kRefused, "--dry-run prints the plan", 0},
      {"--display-allocation", "mpirun", kRefused, "--dry-run prints the plan", 0},
      {"--do-not-launch", "mpirun", kAlias, "--dry-run"},
      {"--report-pid", "mpirun", kRefused, "hvdrun ps lists jobs", 1},
      {"--save_pid", "deepspeed", kRefused, "hvdrun ps lists jobs", 0},
      {"--debug", "accelerate", kRefused, "--verbose logs each step of the start", 0},

      // Options of the training script.
      {"--mixed_precision", "accelerate", kRefused, kTraining, 1, "no"},
      {"--gradient_accumulation_steps", "accelerate", kRefused, kTraining, 1, "1"},
      {"--dynamo_backend", "accelerate", kRefused, kTraining, 1, "no"},
      {"--use_deepspeed", "accelerate", kRefused, kTraining, 0},
      {"--use_fsdp", "accelerate", kRefused, kTraining, 0},
      {"--cpu", "accelerate", kRefused, kTraining, 0},
      {"--config_file", "accelerate", kRefused,
       "its file is not one of hvdrun's; --config-file FILE reads settings of hvdrun"},
  };
}

// Of the options with one dash, only these have more than one letter.
bool HasOneDash(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '-';
}

}  // namespace

std::span<const LauncherWord> LauncherWords() {
  static const auto* const words = new std::vector<LauncherWord>(MakeWords());
  return *words;
}

std::string LongSpelling(std::string_view typed) {
  std::string spelt(typed);
  std::ranges::replace(spelt, '_', '-');
  return HasOneDash(spelt) && spelt.size() > 2 ? "-" + spelt : spelt;
}

const LauncherWord* FindLauncherWord(std::string_view typed) {
  const std::span<const LauncherWord> words = LauncherWords();
  auto found = std::ranges::find(words, typed, &LauncherWord::word);
  if (found == words.end()) {
    const std::string spelt = LongSpelling(typed);
    found = std::ranges::find_if(
        words, [&](const LauncherWord& word) { return LongSpelling(word.word) == spelt; });
  }
  return found == words.end() ? nullptr : &*found;
}

std::string RefusalOf(const LauncherWord& word, std::string_view typed) {
  return std::string(typed) + " is an option of " + std::string(word.launchers) + ": " +
         std::string(word.text);
}

}  // namespace hvd
