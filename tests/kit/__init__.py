"""What tests have in common, a folder for each noun: nothing here is a test. Imported by full name (`from
tests.kit.manager.testbed import Testbed`). It may import the product, which never imports it; its types are checked as
the product's are.

Begin with what a test is to have: `machine/` a simulated machine, `manager/` a manager on one, `hook/` a program with
the hook, `kubelet/` a kubelet that does as told, `apiserver/` an API server, `onenode/` a real node with its `pods/`,
`virtual/` a virtual clock, `arbiter/` the rule of turns alone, `deviceplugin/` what a plugin keeps; `processes/` starts
daemons and waits, `programs/` makes or fetches what is run.
"""
