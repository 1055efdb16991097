# Copyright 2026 graph_depth_refiner contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""How launched processes have to end; shared by the launch tests."""

import launch_testing.asserts


class CleanEnd:
    """Tests after SIGINT, to be mixed into a TestCase of a launch test."""

    def test_exit_codes(self, proc_info):
        launch_testing.asserts.assertExitCodes(proc_info, allowable_exit_codes=[0])

    def test_no_traceback(self, proc_output):
        for process in proc_output.processes():
            text = b''.join(output.text for output in proc_output[process])
            self.assertNotIn(b'Traceback', text)
