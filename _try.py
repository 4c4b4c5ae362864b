from app.manual.http import routes
from app.openapi.document import document
import json
d=document(routes())
need={ c["schema"]["$ref"].rsplit("/")[-1] for p in d["paths"].values() for o in p.values() for a in o["responses"].values() for c in a.get("content",{}).values() if c.get("schema")}
have=set(d["components"]["schemas"])
print("missing",sorted(need-have)); print("unused",sorted(have-need))
