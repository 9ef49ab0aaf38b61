// Any configuration file: keys or one sentence that begins with the name of the file, never a
// crash.
#include "configs/command_line.h"
#include "configs/yaml_file.h"
#include "test/fuzz/seeds.h"

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  hvd::WriteSeeds(
      *argc, *argv,
      {"launcher:\n  num_proc: 2\nlogging: {level: INFO, hide_timestamp: true}\n",
       "controller: gloo\nparams:\n  cycle_time_ms: 5\n", "a: &x [1, 2]\nb: *x\n", "---\n...\n",
       "a: |\n  text\n  more\nb: \"\\e\\x41\"\n", "? [a]\n: b\n", "!!map {a: ~}\n# end"});
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  auto values = hvd::ParseYaml(text, "f.yaml");
  if (!values.ok()) hvd::Must(values.status().message().rfind("f.yaml:", 0) == 0);

  auto no_variables = [](const char*) -> std::optional<std::string> { return std::nullopt; };
  auto file = [&](const std::string&) -> hvd::Result<std::string> { return text; };
  auto line =
      hvd::ParseCommandLine({"-np", "1", "--config-file", "f.yaml", "a"}, no_variables, file);
  hvd::Must(values.ok() || !line.ok());
  if (!line.ok()) hvd::Must(line.status().message().find('\n') == std::string::npos);
  return 0;
}
