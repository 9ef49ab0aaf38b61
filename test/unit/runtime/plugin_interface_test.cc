#include "runtime/backends/plugin_interface.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "runtime/base/log.h"

namespace hvd {
namespace {

TEST(PluginInterfaceTest, APluginLogsAsTheLibraryDoes) {
  void* plugin = ::dlopen(HVD_LOGGING_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << ::dlerror();
  SetLog({LogLevel::kInfo, "hvd slot 3"});
  ASSERT_TRUE(AdmitPlugin(plugin, HVD_LOGGING_PLUGIN).ok());
  testing::internal::CaptureStderr();
  reinterpret_cast<void (*)()>(::dlsym(plugin, "hvd_test_log"))();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[hvd slot 3 info] told\n");
}

}  // namespace
}  // namespace hvd
