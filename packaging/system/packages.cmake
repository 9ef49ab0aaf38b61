# Packages for Debian and RPM, of what `cmake --install` installs: `cpack -G DEB` and `cpack -G RPM` in the build folder.
set(CPACK_PACKAGE_NAME hvdrun)
set(CPACK_PACKAGE_VENDOR "The hvdrun authors")
set(CPACK_PACKAGE_CONTACT "The hvdrun authors <hvdrun@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "starts distributed training jobs and runs their collectives")
set(CPACK_PACKAGE_DESCRIPTION "hvdrun starts the processes of a training job on one or many hosts, and keeps their output, their ends and their
causes. libhvd.so and the Python package horovod reduce their gradients.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_FILE_NAME hvdrun-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The build tree's libraries are the package's own.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, openssh-client")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-torch, openssh-server")

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0")
set(CPACK_RPM_PACKAGE_GROUP "Applications/Engineering")
set(CPACK_RPM_PACKAGE_AUTOREQ ON)
# Folders that the distribution's own packages have.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/share/man /usr/share/man/man1 /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh
    /usr/share/zsh/site-functions /usr/share/fish /usr/share/fish/vendor_completions.d /usr/lib/pkgconfig /usr/lib/cmake)
include(CPack)
