#include "configs/man_sections.h"

namespace hvd {

std::span<const ManRow> ExitStatusRows() {
  static constexpr ManRow kRows[] = {
      {"0", "Every rank ended with 0, and all of their output was written."},
      {"1",
       "A host was lost, hvdrun ran out of something, a rank left with 0 in the middle of the job, "
       "or the output could not be written. hvdrun doctor: a host cannot be used."},
      {"2", "Wrong usage; nothing was started."},
      {"N", "The exit code of the first rank that failed."},
      {"75",
       "The ranks of an elastic job left at a commit because they were asked to stop (SIGTERM, "
       "SIGUSR1, hvdrun stop --after-step), or all ranks of a job left by hvd.should_stop()."},
      {"79",
       "A collective took longer than --stall-check-shutdown-time-seconds, or could never end."},
      {"124", "The limit of --timeout was reached."},
      {"126", "The command is not executable, or there was no room for one more process."},
      {"127", "The command was not found."},
      {"128 + n", "Signal n ended the first rank that failed."},
      {"129", "The terminal was closed (SIGHUP)."},
      {"130", "Ctrl-C (SIGINT), or hvdrun stop."},
      {"141", "The job succeeded, but the reader of its output had gone."},
      {"143", "SIGTERM ended the job."},
  };
  return kRows;
}

std::span<const ManRow> EnvironmentRows() {
  static constexpr ManRow kRows[] = {
      {"CUDA_VISIBLE_DEVICES",
       "Slots of this host, where no number of slots is given; the GPUs that --gpus one and "
       "near share out."},
      {"HOROVOD_ENABLE_ASYNC_COMPLETION",
       "0 in the workers: a collective of tensors on GPUs is done only when the GPU is."},
      {"HOROVOD_GPU_REGISTERED_BUFFERS",
       "1 in all workers: small tensors on GPUs are packed into memory of NCCL's own that is "
       "registered with it, where its version has such things (2.19.1). Not tried on a GPU yet."},
      {"HOROVOD_GPU_STAGED",
       "1 in the workers: tensors on GPUs travel through the memory of the host, not by NCCL."},
      {"FORCE_COLOR",
       "When set, messages and the labels of --color auto are coloured in files and pipes, too; 0: "
       "nowhere."},
      {"NO_COLOR", "When set, messages and the labels of --color auto are not coloured."},
      {"SSH_AUTH_SOCK", "The ssh-agent whose keys are used to log in to other hosts."},
      {"XDG_CACHE_HOME, TMPDIR",
       "On other hosts: where a copy of hvdrun is kept if none is installed. XDG_CACHE_HOME also "
       "for "
       "the results of --autotune, on the host of rank 0."},
      {"HOROVOD_RANK, HOROVOD_SIZE, HOROVOD_LOCAL_RANK, HOROVOD_LOCAL_SIZE, HOROVOD_CROSS_RANK, "
       "HOROVOD_CROSS_SIZE, HOROVOD_HOSTNAME",
       "Set in the workers: the place of the rank."},
      {"RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
       "Set in the workers, with the other variables of torchrun, for torch.distributed."},
      {"HVDRUN_...",
       "Each option has such a variable: HVDRUN_SSH_PORT is --ssh-port. A list has none."},
      {"HVD_RUNTIME", "Set in the workers: the libhvd.so that they load."},
      {"OMP_NUM_THREADS", "Set in the workers to their share of the cores; see --omp-threads."},
  };
  return kRows;
}

std::span<const ManRow> FileRows() {
  static constexpr ManRow kRows[] = {
      {"~/.ssh/config, ~/.ssh/known_hosts",
       "How other hosts are reached, and their keys. known_hosts is written to with "
       "--ssh-host-keys accept-new only."},
      {"/etc/hvdrun/config.yaml, ~/.config/hvdrun/config.yaml",
       "Settings of all jobs of this machine, and of yours; see --standing-config."},
      {"~/.cache/hvdrun",
       "On other hosts: copies of hvdrun for jobs of builds that are not installed there. They may "
       "be removed while no job runs."},
      {"~/.cache/hvdrun/tuning",
       "On the host of rank 0: the results of --autotune, for hvdrun tune and later runs."},
      {"DIR/rank.N/stdout, DIR/rank.N/stderr", "The output of rank N, with --output-filename DIR."},
  };
  return kRows;
}

}  // namespace hvd
