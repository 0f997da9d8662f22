# cmake --install BUILD --prefix PREFIX: the programs, what `data prepare` runs, the units with the
# prefix's program in them, the completion, and the samples. The default is /usr/local.

install(TARGETS longhaul longhauld RUNTIME DESTINATION bin)
install(DIRECTORY ${CMAKE_BINARY_DIR}/share/longhaul DESTINATION share)
install(FILES deploy/README.md DESTINATION share/doc/longhaul)
install(FILES deploy/systemd/longhaul-worker-card.conf DESTINATION share/doc/longhaul/systemd)
install(DIRECTORY deploy/config deploy/examples DESTINATION share/doc/longhaul)
install(CODE [[
  set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
  execute_process(COMMAND "${root}/bin/longhaul" completion bash OUTPUT_VARIABLE completion
                  COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE "${root}/share/bash-completion/completions/longhaul" "${completion}")
]])
foreach(unit longhaul-coordinator.service longhaul-worker@.service)
  install(CODE "
    file(READ \"${CMAKE_SOURCE_DIR}/deploy/systemd/${unit}\" text)
    string(REPLACE /usr/ \"\${CMAKE_INSTALL_PREFIX}/\" text \"\${text}\")
    file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/systemd/system/${unit}\" \"\${text}\")
  ")
endforeach()
