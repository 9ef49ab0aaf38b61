/* Collectives whose ends are received by on_done, in a program in C; see test_callbacks.py. */
#include <hvd/hvd.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "line %d: %s; %s\n", __LINE__, #condition, hvd_last_error()); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

enum { TENSORS = 200 };

struct end {
  int calls, status, outputs, restart;
  char sentence[512];
  pthread_t thread;
  sem_t* ended;
  float value;
  int64_t rows;
};

static int64_t one[1] = {1};

static hvd_request request_of(hvd_tensor* tensor, const char* name, float* value);

static void on_done(void* arg, int32_t status, const char* sentence, struct hvd_result* result) {
  struct end* end = arg;
  end->status = status;
  end->thread = pthread_self();
  snprintf(end->sentence, sizeof end->sentence, "%s", sentence);
  end->outputs = result == NULL ? -1 : result->output_count;
  if (result != NULL && result->output_count > 0 && result->outputs[0].data != NULL) {
    end->rows = result->outputs[0].shape[0];
    hvd_free(result->outputs[0].data);
  }
  ++end->calls;
  if (end->restart > 0) { /* the same name once more, from inside the callback */
    hvd_tensor tensor = HVD_TENSOR_INIT;
    hvd_request request = request_of(&tensor, "again", &end->value);
    --end->restart;
    request.on_done = on_done;
    request.on_done_arg = end;
    CHECK(hvd_submit(&request, NULL) == HVD_OK);
    return;
  }
  sem_post(end->ended);
}

static hvd_request request_of(hvd_tensor* tensor, const char* name, float* value) {
  hvd_request request = HVD_REQUEST_INIT;
  tensor->dtype = HVD_FLOAT32;
  tensor->input = tensor->output = value;
  tensor->shape = one;
  tensor->ndim = 1;
  request.collective = HVD_ALLREDUCE;
  request.name = name;
  request.tensor = tensor;
  return request;
}

static int submit(const char* name, struct end* end, int64_t wait_us) {
  hvd_tensor tensor = HVD_TENSOR_INIT;
  hvd_request request = request_of(&tensor, name, &end->value);
  hvd_handle handle = 7;
  int status;
  request.on_done = on_done;
  request.on_done_arg = end;
  request.on_done_wait_us = wait_us;
  status = hvd_submit(&request, &handle);
  if (status == HVD_OK) CHECK(handle == 0);
  return status;
}

static int threads(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  int count = -1;
  while (fgets(line, sizeof line, file) != NULL)
    if (strncmp(line, "Threads:", 8) == 0) count = atoi(line + 8);
  fclose(file);
  return count;
}

static void many(sem_t* ended) {
  static struct end ends[TENSORS];
  char name[32];
  for (int round = 0; round < 20; ++round) {
    for (int turn = 0; turn < TENSORS; ++turn) {
      const int i = (hvd_rank() + round) % 2 == 0 ? turn : TENSORS - 1 - turn;
      snprintf(name, sizeof name, "t%d", i);
      memset(&ends[i], 0, sizeof ends[i]);
      ends[i].ended = ended;
      ends[i].value = (float)(hvd_rank() + i);
      CHECK(submit(name, &ends[i], 0) == HVD_OK);
    }
    for (int i = 0; i < TENSORS; ++i) sem_wait(ended);
    for (int i = 0; i < TENSORS; ++i) {
      CHECK(ends[i].calls == 1 && ends[i].status == HVD_OK && ends[i].outputs == 1);
      CHECK(ends[i].value == (float)(i * hvd_size() + hvd_size() * (hvd_size() - 1) / 2));
      CHECK(!pthread_equal(ends[i].thread, pthread_self()));
      CHECK(pthread_equal(ends[i].thread, ends[0].thread));
    }
  }
}

static void again(sem_t* ended) {
  struct end end = {0};
  end.ended = ended;
  end.restart = 50;
  end.value = 0;
  CHECK(submit("again", &end, 0) == HVD_OK);
  sem_wait(ended);
  CHECK(end.calls == 51);
}

static void inline_wait(sem_t* ended) {
  int here = 0;
  for (int i = 0; i < 50; ++i) {
    struct end end = {0};
    end.ended = ended;
    end.value = 1;
    CHECK(submit("inline", &end, 5000000) == HVD_OK);
    here += end.calls; /* it was called by this thread, before hvd_submit returned */
    sem_wait(ended);
    CHECK(end.value == (float)hvd_size());
    if (pthread_equal(end.thread, pthread_self())) CHECK(end.calls == 1);
  }
  CHECK(here == 50);
}

static void made_outputs(sem_t* ended) {
  hvd_tensor tensor = HVD_TENSOR_INIT;
  struct end end = {0};
  hvd_request request = request_of(&tensor, "gather", &end.value);
  end.ended = ended;
  tensor.output = NULL;
  request.collective = HVD_ALLGATHER;
  request.on_done = on_done;
  request.on_done_arg = &end;
  CHECK(hvd_submit(&request, NULL) == HVD_OK);
  sem_wait(ended);
  CHECK(end.status == HVD_OK && end.rows == hvd_size());
}

static void refused(sem_t* ended) {
  struct end end = {0};
  hvd_tensor tensor = HVD_TENSOR_INIT;
  hvd_request request = request_of(&tensor, "refused", &end.value);
  end.ended = ended;
  request.on_done = on_done;
  request.on_done_arg = &end;
  request.process_set = 99;
  CHECK(hvd_submit(&request, NULL) == HVD_INVALID_ARGUMENT);
  request.process_set = 0;
  CHECK(hvd_run(&request) == HVD_INVALID_ARGUMENT);
  CHECK(strstr(hvd_last_error(), "on_done") != NULL);
  /* What an older header does not have is not read. */
  request.struct_size = (uint32_t)((char*)&request.on_done - (char*)&request);
  CHECK(hvd_run(&request) == HVD_OK);
  CHECK(end.calls == 0);
}

static void mismatch(sem_t* ended) {
  struct end end = {0};
  hvd_tensor tensor = HVD_TENSOR_INIT;
  hvd_request request = request_of(&tensor, "mismatch", &end.value);
  int64_t none[1] = {hvd_rank() == 0};
  end.ended = ended;
  tensor.shape = none;
  request.on_done = on_done;
  request.on_done_arg = &end;
  CHECK(hvd_submit(&request, NULL) == HVD_OK);
  sem_wait(ended);
  CHECK(end.status == (hvd_size() > 1 ? HVD_MISMATCH : HVD_OK));
  if (hvd_size() > 1) CHECK(strstr(end.sentence, "mismatch") != NULL);
}

static void at_shutdown(sem_t* ended) {
  struct end end = {0};
  end.ended = ended;
  const int rank = hvd_rank(), size = hvd_size();
  if (rank == 0) CHECK(submit("alone", &end, 0) == HVD_OK);
  CHECK(hvd_shutdown() == HVD_OK);
  if (rank != 0) return;
  CHECK(end.calls == 1);
  sem_wait(ended);
  CHECK(end.status == (size > 1 ? HVD_ABORTED : HVD_OK));
}

static void ends_world(void* arg, int32_t status, const char* sentence, struct hvd_result* result) {
  struct end* end = arg;
  (void)sentence, (void)result;
  CHECK(status == HVD_OK);
  CHECK(hvd_shutdown() == HVD_INVALID_ARGUMENT);
  CHECK(hvd_init(NULL) == HVD_INVALID_ARGUMENT);
  sem_post(end->ended);
}

static void no_shutdown_inside(sem_t* ended) {
  struct end end = {0};
  hvd_tensor tensor = HVD_TENSOR_INIT;
  hvd_request request = request_of(&tensor, "inside", &end.value);
  end.ended = ended;
  request.on_done = ends_world;
  request.on_done_arg = &end;
  CHECK(hvd_submit(&request, NULL) == HVD_OK);
  sem_wait(ended);
}

static void forked(void) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    struct end end = {0};
    _exit(threads() == 1 && submit("child", &end, 0) == HVD_FORKED && end.calls == 0 ? 0 : 1);
  }
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

static void microseconds(void) {
  float value = 1;
  hvd_tensor tensor = HVD_TENSOR_INIT;
  hvd_request request = request_of(&tensor, "late", &value);
  hvd_handle handle = 0;
  int status;
  if (hvd_rank() != 0) usleep(200000);
  CHECK(hvd_submit(&request, &handle) == HVD_OK);
  if (hvd_rank() == 0 && hvd_size() > 1) CHECK(hvd_wait_us(handle, 50) == HVD_IN_PROGRESS);
  do status = hvd_wait_us(handle, 1000);
  while (status == HVD_IN_PROGRESS);
  CHECK(status == HVD_OK && value == (float)hvd_size());
  CHECK(hvd_wait_us(handle, 50) == HVD_INVALID_ARGUMENT);
}

int main(int argc, char** argv) {
  sem_t ended;
  const char* what = argc > 1 ? argv[1] : "all";
  sem_init(&ended, 0, 0);
  for (int world = 0; world < 2; ++world) {
    CHECK(hvd_init(NULL) == HVD_OK);
    if (strcmp(what, "death") == 0) {
      struct end end = {0};
      end.ended = &ended;
      struct end over = {0};
      over.ended = &ended;
      many(&ended);
      /* Rank 1 dies once rank 0 has all of it, and may then be gone before rank 0 has this one. */
      CHECK(submit("over", &over, 0) == HVD_OK);
      sem_wait(&ended);
      if (hvd_rank() == 1) _exit(3);
      if (submit("lonely", &end, 0) != HVD_OK) return 1;
      sem_wait(&ended);
      CHECK(end.status == HVD_ABORTED && strstr(end.sentence, "rank 1") != NULL);
      printf("%s\n", end.sentence);
      return 0;
    }
    const int before = threads();
    microseconds();
    CHECK(threads() == before); /* who does not use it has no thread for it */
    refused(&ended);
    many(&ended);
    CHECK(threads() == before + 1);
    again(&ended);
    inline_wait(&ended);
    made_outputs(&ended);
    mismatch(&ended);
    no_shutdown_inside(&ended);
    forked();
    at_shutdown(&ended);
  }
  puts("whole");
  return 0;
}
