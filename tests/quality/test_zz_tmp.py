import os
from tests.quality.cases import broken_by
from tests.quality.clean import sound_plans
def test_it(spark):
    n=int(os.environ.get("N","150")); s=int(os.environ.get("S","0"))
    plans=dict(sound_plans(n, seed=s, with_limits=True))
    from collections import Counter
    print(Counter(bool(c.plan.moves) for c in plans.values()))
    broken=broken_by(spark, plans)
    bad={k:v for k,v in broken.items() if v}
    for k,v in bad.items():
        print("BAD",k,v)
        print("   ",plans[k].request.caps, plans[k].request.broker_sets)
    assert not bad
