"""The panel "Create it": what it says, what it offers to copy, and what it does where nothing can be created."""

import yaml
from streamlit.testing.v1 import AppTest

from app.pages.topology.manifest import facts
from catalog.slices import families
from simulators.topology import parse
from simulators.topology.manifests.manifest import manifest


def script():
    from app.pages.topology.lab import Lab, asked
    from app.pages.topology.manifest import panel
    from simulators.topology import parse

    panel(Lab(parse(asked()[0]), None, None))


def opened(**address: str) -> AppTest:
    at = AppTest.from_function(script, default_timeout=30)
    at.query_params.update(address)
    return at.run()


def said(at: AppTest) -> str:
    return "\n".join(e.value for kind in (at.markdown, at.info, at.caption) for e in kind).replace("\\", "")


def test_the_job_is_there_to_copy_and_choices_go_into_the_address(place):
    at = opened(spec="v6e:2x4")
    assert not at.exception
    assert "2 hosts of type ct6e-standard-4t with 4 chips each: 8 chips." in said(at)
    assert "2x4 is a mesh: only an axis of 16 is a ring." in said(at) and "`CLUSTER`: a GKE cluster" in said(at)
    figures = {m.label[:-2]: m.value for m in at.metric}
    assert (figures["Machine type"], figures["Hosts"], figures["Host memory"]) == ("ct6e-standard-4t", "2", "720 GB")
    pool, workload = at.code
    assert "--num-nodes=2" in pool.value and list(yaml.safe_load_all(workload.value))[1]["spec"]["parallelism"] == 2
    at.button_group(key="switch_machine").set_value("ct6e-standard-8t").run()
    at.button_group(key="switch_capacity").set_value("spot").run()
    at.button_group(key="switch_tool").set_value("queued").run()
    chosen = [at.query_params[name] for name in ("machine", "capacity", "tool")]
    assert chosen == ["ct6e-standard-8t", "spot", "queued"]
    assert "1 host of type ct6e-standard-8t with 8 chips: 8 chips." in said(at)
    assert "--spot" in at.code[0].value and "--accelerator-type=v6e-8" in at.code[0].value
    assert "`CLUSTER`" not in said(at)  # nothing of it is in that command


def test_what_nobody_offers_leads_to_the_nearest_that_somebody_does(place):
    at = opened(spec="boardfly:1024", fail="chip=3")
    assert not at.exception and not at.code
    assert "how its slices are created is not published" in said(at)
    at.button(key="create v5p:8x8x16").click().run()
    assert at.query_params["spec"] == "v5p:8x8x16" and "fail" not in at.query_params
    assert "256 hosts of type ct5p-hightpu-4t" in said(at)


def test_every_fact_has_its_source_and_mark():
    family = families()["TPU v5p"]
    table = facts(family, manifest(parse("v5p:4x4x16"))).set_index("fact")
    assert (table[["source", "mark"]] != "").all(axis=None)
    assert table.loc["slice that xpk creates", "value"] == "not listed"
    assert table.loc["the shape 4x4x16 exists", "mark"] == "derived"
    assert table.loc["runtime version", "value"] == "v2-alpha-tpuv5"
